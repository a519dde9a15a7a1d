#include "runtime/comm/tcp_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "plan/errors.h"

namespace reckon {
namespace {

constexpr std::uint32_t kLongestFrame = 64u << 20;
constexpr int kSendPatienceMilliseconds = 10000;
constexpr std::chrono::milliseconds kBetweenTries{100};

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

/// `error` gets getaddrinfo's code.
Addresses resolve(const std::string& address, int port, int flags, int& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  error = getaddrinfo(address.c_str(), fmt::format("{}", port).c_str(), &hints, &list);
  return Addresses(error == 0 ? list : nullptr);
}

int port_of(int descriptor) {
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &length);
  std::array<char, 16> service{};
  getnameinfo(reinterpret_cast<sockaddr*>(&name), length, nullptr, 0, service.data(), service.size(), NI_NUMERICSERV);
  return std::atoi(service.data());
}

/// Zero, or why it could not be connected within `milliseconds`.
int connect_within(int descriptor, const addrinfo& to, int milliseconds) {
  if (connect(descriptor, to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{descriptor, POLLOUT, 0};
  if (poll(&waiting, 1, milliseconds) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

void FrameSocket::read_available() {
  std::array<char, 65536> part;
  while (true) {
    const ssize_t count = recv(number(), part.data(), part.size(), MSG_DONTWAIT);
    if (count > 0) {
      arrived_.append(part.data(), static_cast<std::size_t>(count));
      continue;
    }
    if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) open_ = false;
    if (count == 0 || errno != EINTR) return;
  }
}

std::optional<Frame> FrameSocket::next() {
  std::array<std::uint32_t, 2> header{};  // kind, bytes
  if (arrived_.size() < sizeof(header)) return {};
  std::memcpy(header.data(), arrived_.data(), sizeof(header));
  if (header[1] > kLongestFrame) {
    open_ = false;
    arrived_.clear();
    return {};
  }
  if (arrived_.size() < sizeof(header) + header[1]) return {};
  Frame frame{static_cast<int>(header[0]), arrived_.substr(sizeof(header), header[1])};
  arrived_.erase(0, sizeof(header) + header[1]);
  return frame;
}

void FrameSocket::send(int kind, std::string_view bytes) {
  const std::array<std::uint32_t, 2> header{static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(bytes.size())};
  std::string all(reinterpret_cast<const char*>(header.data()), sizeof(header));
  all.append(bytes);
  for (std::size_t sent = 0; open_ && sent < all.size();) {
    const ssize_t count = ::send(number(), all.data() + sent, all.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd waiting{number(), POLLOUT, 0};
      if (poll(&waiting, 1, kSendPatienceMilliseconds) <= 0) open_ = false;
    } else if (errno != EINTR) {
      open_ = false;
    }
  }
}

Descriptor listen_on(const std::string& address, int& port) {
  int error = 0;
  const Addresses list = resolve(address, port, AI_PASSIVE, error);
  if (!list) throw RunError(fmt::format("rank 0's address {}: {}", address, gai_strerror(error)));
  int reason = 0;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    Descriptor listener(socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    setsockopt(listener.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(listener.number(), entry->ai_addr, entry->ai_addrlen) == 0 && listen(listener.number(), SOMAXCONN) == 0) {
      port = port_of(listener.number());
      return listener;
    }
    reason = errno;
  }
  if (reason == EADDRNOTAVAIL)
    throw RunError(fmt::format(
        "rank 0 runs on a host that has not the address {}; it must be an address of the host of rank 0", address));
  if (reason == EADDRINUSE)
    throw RunError(fmt::format("port {} of {} is taken by another program; choose another MASTER_PORT", port, address));
  throw RunError(fmt::format("rank 0 cannot listen on {}:{}: {}", address, port, std::strerror(reason)));
}

std::optional<FrameSocket> accept_from(const Descriptor& listener) {
  const int number = accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC);
  if (number < 0) return {};
  const int yes = 1;
  setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  return FrameSocket(Descriptor(number));
}

FrameSocket connect_to(const std::string& address, int port, Deadline deadline) {
  std::string reason;
  while (true) {
    int error = 0;
    const Addresses list = resolve(address, port, 0, error);
    if (!list && error != EAI_AGAIN)
      throw RunError(fmt::format("rank 0's address {} cannot be found: {}", address, gai_strerror(error)));
    if (!list) reason = gai_strerror(error);
    for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Deadline::clock::now());
      Descriptor descriptor(socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int failure = connect_within(descriptor.number(), *entry, std::max<int>(1, static_cast<int>(left.count())));
      if (failure == 0) {
        const int yes = 1;
        setsockopt(descriptor.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        return FrameSocket(std::move(descriptor));
      }
      reason = std::strerror(failure);
    }
    if (Deadline::clock::now() + kBetweenTries >= deadline) throw RunError(reason, ExitCode::timeout);
    std::this_thread::sleep_for(kBetweenTries);
  }
}

}  // namespace reckon
