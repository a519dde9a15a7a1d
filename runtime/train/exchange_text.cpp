#include "runtime/train/exchange_text.h"

#include <cstdint>
#include <numeric>

namespace reckon {

std::vector<std::string> exchange_text(Communicator& world, const std::string& own) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(world.size()));
  const std::vector<std::int64_t> size{static_cast<std::int64_t>(own.size())};
  world.all_gather(view(size), view(sizes)).wait();
  std::vector<std::uint8_t> all(static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0})));
  const std::vector<std::uint8_t> bytes(own.begin(), own.end());
  world.all_gather(view(bytes), view(all), sizes).wait();
  std::vector<std::string> texts;
  auto begin = all.begin();
  for (const std::int64_t count : sizes) {
    texts.emplace_back(begin, begin + count);
    begin += count;
  }
  return texts;
}

}  // namespace reckon
