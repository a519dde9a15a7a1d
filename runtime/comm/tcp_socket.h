// TCP connections that carry frames: a kind and bytes. Every wait has an end.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace reckon {

using Deadline = std::chrono::steady_clock::time_point;

/// Owner of a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

struct Frame {
  int kind = 0;
  std::string bytes;
};

/// A connection; frames larger than 64 MiB are refused (no rank sends such).
class FrameSocket {
 public:
  explicit FrameSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  int number() const { return descriptor_.number(); }
  /// False once the other side has closed or reset the connection, or sent what is no frame.
  bool is_open() const { return open_; }

  /// Takes what has arrived, without waiting; call it when poll() says that the descriptor is readable.
  void read_available();
  /// The next complete frame of what has arrived.
  std::optional<Frame> next();
  /// Sends all of it; gives up on a peer that takes nothing for ten seconds.
  void send(int kind, std::string_view bytes);

 private:
  Descriptor descriptor_;
  bool open_ = true;
  std::string arrived_;
};

/// A listening socket on `address` (a name or number of this host) and `port` (0 = any free one); `port` becomes the
/// real one. Throws RunError: the name does not resolve, is not this host's, or the port is taken.
Descriptor listen_on(const std::string& address, int& port);

/// The next waiting connection, if there is one.
std::optional<FrameSocket> accept_from(const Descriptor& listener);

/// Tries until the deadline, because the listener may start later. Throws RunError with the last reason.
FrameSocket connect_to(const std::string& address, int port, Deadline deadline);

}  // namespace reckon
