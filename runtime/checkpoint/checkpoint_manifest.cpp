#include "runtime/checkpoint/checkpoint_manifest.h"

#include <fmt/format.h>

#include "plan/errors.h"
#include "plan/read_only_file.h"
#include "runtime/checkpoint/json_text.h"

namespace reckon {
namespace {

constexpr const char* kSchema = "reckon.checkpoint/1";
constexpr std::int64_t kMostBytes = 64 << 20;

std::string checksum_text(std::uint64_t checksum) {
  return fmt::format("{:016x}", checksum);
}

/// Of the content without its own checksum: JSON is written in one way only (keys sorted, no spaces).
std::string checksum_of(const Json& content) {
  Xxh64 checksum;
  checksum.update(content.dump());
  return checksum_text(checksum.digest());
}

}  // namespace

std::string manifest_json(const CheckpointManifest& manifest) {
  Json content;
  content["step"] = manifest.step;
  content["world_size"] = manifest.world_size;
  content["states"] = manifest.states;
  content["data"] = {{"seed", manifest.seed}, {"next_step", manifest.step}};
  content["random"] = {{"generator", "splitmix64 of seed and place"}, {"seed", manifest.seed}};
  for (const auto& [name, seal] : manifest.files)
    content["files"][name] = {{"bytes", seal.bytes}, {"xxh64", checksum_text(seal.checksum)}};
  const Json document = {{"schema", kSchema}, {"content", content}, {"xxh64_of_content", checksum_of(content)}};
  return document.dump(1) + "\n";
}

CheckpointManifest read_manifest(const std::filesystem::path& checkpoint) {
  const ReadOnlyFile file(checkpoint / "manifest.json");
  const auto refuse = [&](const std::string& what) { throw ConfigError({{what, file.name(), 0, 0, {}}}); };
  if (file.size() > kMostBytes) refuse(fmt::format("is larger than any manifest ({} bytes)", file.size()));
  const Json document = parse_json(file.read_text(0, file.size()), file.name());
  try {
    if (document.at("schema") != kSchema)
      refuse(fmt::format("is of another format than {}, so this version cannot read it", kSchema));
    const Json& content = document.at("content");
    if (document.at("xxh64_of_content") != checksum_of(content))
      refuse("was altered after it was written: its checksum does not match");
    CheckpointManifest manifest;
    manifest.step = content.at("step").get<std::int64_t>();
    manifest.seed = content.at("data").at("seed").get<std::uint64_t>();
    manifest.world_size = content.at("world_size").get<std::int64_t>();
    manifest.states = content.at("states").get<std::vector<std::string>>();
    if (manifest.step < 1 || manifest.world_size < 1)
      refuse(fmt::format("tells of step {} of {} ranks", manifest.step, manifest.world_size));
    for (const auto& [name, seal] : content.at("files").items()) {
      if (name.empty() || std::filesystem::path(name).filename() != name || name == "." || name == "..")
        refuse(fmt::format("names the file {}, which is not inside the checkpoint", shown_name(name)));
      manifest.files[name] = {seal.at("bytes").get<std::int64_t>(),
                              std::stoull(seal.at("xxh64").get<std::string>(), nullptr, 16)};
    }
    return manifest;
  } catch (const Json::exception& error) {
    refuse(fmt::format("is no manifest of a checkpoint: {}", error.what()));
  } catch (const std::logic_error&) {  // of std::stoull
    refuse("is no manifest of a checkpoint: a checksum is no hexadecimal number");
  }
  throw std::logic_error("not reached");
}

}  // namespace reckon
