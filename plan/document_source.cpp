#include "plan/document_source.h"

#include "plan/byte_tokens.h"
#include "plan/megatron_dataset.h"
#include "plan/read_only_file.h"
#include "plan/token_file.h"

namespace reckon {

std::vector<std::int32_t> DocumentSource::read_all(std::int64_t document) const {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(length(document)));
  read(document, 0, tokens);
  return tokens;
}

std::vector<std::int64_t> DocumentSource::lengths() const {
  std::vector<std::int64_t> all;
  for (std::int64_t document = 0; document < documents(); ++document) all.push_back(length(document));
  return all;
}

std::unique_ptr<DocumentSource> open_documents(const std::filesystem::path& path) {
  if (folder_exists(path)) return open_text(path);
  const std::filesystem::path ending = path.extension();
  if (ending == ".idx" || (ending == ".bin" && path_exists(std::filesystem::path(path).replace_extension(".idx"))))
    return open_megatron(path);
  return is_token_file(path) ? open_token_file(path) : open_text(path);
}

}  // namespace reckon
