// Processes of one host: POSIX shared memory for the blocks, process_vm_readv for each other's buffers (one copy, no
// help from the owner).
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "plan/errors.h"
#include "runtime/comm/host_memory.h"

namespace reckon {
namespace {

std::string block_name(std::uint64_t token) {
  return fmt::format("/reckon-{:x}", token);
}

[[noreturn]] void throw_system_error(const std::string& call) {
  throw RunError(fmt::format("{} failed: {}", call, std::strerror(errno)));
}

class ProcessMemory final : public HostMemory {
 public:
  explicit ProcessMemory(std::vector<int> process_ids) : process_ids_(std::move(process_ids)) {}

  std::uint64_t create_block(std::size_t bytes) override {
    const auto [token, file] = new_name();
    const int failed = posix_fallocate(file, 0, static_cast<off_t>(bytes));
    close(file);
    if (failed != 0) {
      shm_unlink(block_name(token).c_str());
      throw RunError(fmt::format("/dev/shm has no room for {} bytes: {}", bytes, std::strerror(failed)));
    }
    return token;
  }

  std::shared_ptr<std::byte> attach_block(std::uint64_t token, std::size_t bytes) override {
    const int file = shm_open(block_name(token).c_str(), O_RDWR, 0600);
    if (file < 0) throw_system_error("shm_open of " + block_name(token));
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) throw_system_error("mmap of " + block_name(token));
    return {static_cast<std::byte*>(memory), [bytes](std::byte* block) { munmap(block, bytes); }};
  }

  void forget_block(std::uint64_t token) override { shm_unlink(block_name(token).c_str()); }

  const void* look(int owner, std::uint64_t address, std::int64_t bytes, void* scratch) override {
    auto* to = static_cast<std::byte*>(scratch);
    std::int64_t done = 0;
    while (done < bytes) {
      const auto length = static_cast<std::size_t>(std::min(bytes - done, kLargestRead));
      iovec local{to + done, length};
      iovec remote{reinterpret_cast<void*>(address + static_cast<std::uint64_t>(done)), length};
      const ssize_t moved = process_vm_readv(process_ids_[static_cast<std::size_t>(owner)], &local, 1, &remote, 1, 0);
      if (moved <= 0) throw_system_error(fmt::format("reading {} bytes of rank {}'s memory", bytes, owner));
      done += moved;
    }
    return scratch;
  }

  bool alive(int owner) override { return kill(process_ids_[static_cast<std::size_t>(owner)], 0) == 0; }

 private:
  /// A name that nobody has. Process ids repeat in other namespaces that share /dev/shm, and a killed run may leave
  /// its.
  static std::pair<std::uint64_t, int> new_name() {
    std::random_device random;
    for (int attempt = 0; attempt < 100; ++attempt) {
      const std::uint64_t token = static_cast<std::uint64_t>(random()) << 32 | random();
      const int file = shm_open(block_name(token).c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
      if (file >= 0) return {token, file};
      if (errno != EEXIST) throw_system_error("shm_open of " + block_name(token));
    }
    throw RunError("/dev/shm has no free name for a block");
  }

  static constexpr std::int64_t kLargestRead = std::int64_t{1} << 26;

  std::vector<int> process_ids_;
};

}  // namespace

std::shared_ptr<HostMemory> process_memory(std::vector<int> process_ids) {
  return std::make_shared<ProcessMemory>(std::move(process_ids));
}

}  // namespace reckon
