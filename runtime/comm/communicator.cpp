// Argument checks and counting that all backends share. A wrong argument is a bug of the caller on this rank alone, so
// it throws std::logic_error.
#include "runtime/comm/communicator.h"

#include <fmt/format.h>

#include <numeric>
#include <stdexcept>

#include "runtime/comm/reduce.h"

namespace reckon {
namespace {

void require(bool condition, const Operation& operation, const std::string& rule) {
  if (!condition) throw std::logic_error(fmt::format("{}: {}", describe(operation), rule));
}

void check_table(const Operation& operation, const std::vector<std::int64_t>& counts, std::int64_t count, int size) {
  require(static_cast<int>(counts.size()) == size, operation,
          fmt::format("the table has {} counts for {} ranks", counts.size(), size));
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  require(total == count, operation, fmt::format("the counts add up to {}, the buffer holds {}", total, count));
}

bool overlap(const ConstBufferView& a, const ConstBufferView& b) {
  const auto* first = static_cast<const std::byte*>(a.address);
  const auto* second = static_cast<const std::byte*>(b.address);
  return a.bytes() > 0 && b.bytes() > 0 && first < second + b.bytes() && second < first + a.bytes();
}

void check_types(const Operation& operation) {
  require(operation.send.type == operation.receive.type, operation,
          fmt::format("sends {} and receives {}", name_of(operation.send.type), name_of(operation.receive.type)));
}

void check_reduction(const Operation& operation) {
  require(can_reduce(operation.send.type), operation, "raw bytes cannot be reduced");
}

void check_peer(const Operation& operation, int size) {
  require(operation.peer >= 0 && operation.peer < size, operation,
          fmt::format("there are only ranks 0 to {}", size - 1));
}

}  // namespace

Handle Communicator::issue(Operation operation) {
  traffic_.count(operation, rank_, size_);
  return Handle(start(std::move(operation)));
}

Handle Communicator::all_reduce(ConstBufferView send, BufferView receive, Reduction reduction) {
  Operation operation{OperationKind::all_reduce, reduction, send, receive, 0, {}, {}};
  check_types(operation);
  check_reduction(operation);
  require(send.count == receive.count, operation, fmt::format("receives {} elements", receive.count));
  require(send.address == receive.address || !overlap(send, receive), operation, "the buffers overlap in part");
  return issue(std::move(operation));
}

Handle Communicator::all_gather(ConstBufferView send, BufferView receive) {
  Operation operation{OperationKind::all_gather, Reduction::sum, send, receive, 0, {}, {}};
  check_types(operation);
  require(receive.count == size_ * send.count, operation,
          fmt::format("receives {} elements, not {} x {}", receive.count, size_, send.count));
  return issue(std::move(operation));
}

Handle Communicator::all_gather(ConstBufferView send, BufferView receive, std::span<const std::int64_t> counts) {
  Operation operation{OperationKind::all_gather, Reduction::sum, send, receive, 0, {}, {counts.begin(), counts.end()}};
  check_types(operation);
  check_table(operation, operation.receive_counts, receive.count, size_);
  require(counts[static_cast<std::size_t>(rank_)] == send.count, operation,
          fmt::format("the table gives this rank {} elements", counts[static_cast<std::size_t>(rank_)]));
  return issue(std::move(operation));
}

Handle Communicator::reduce_scatter(ConstBufferView send, BufferView receive, Reduction reduction) {
  Operation operation{OperationKind::reduce_scatter, reduction, send, receive, 0, {}, {}};
  check_types(operation);
  check_reduction(operation);
  require(send.count == size_ * receive.count, operation,
          fmt::format("receives {} elements, which times {} ranks is not {}", receive.count, size_, send.count));
  return issue(std::move(operation));
}

Handle Communicator::reduce_scatter(ConstBufferView send, BufferView receive, std::span<const std::int64_t> counts,
                                    Reduction reduction) {
  Operation operation{OperationKind::reduce_scatter, reduction, send, receive, 0, {counts.begin(), counts.end()}, {}};
  check_types(operation);
  check_reduction(operation);
  check_table(operation, operation.send_counts, send.count, size_);
  require(counts[static_cast<std::size_t>(rank_)] == receive.count, operation,
          fmt::format("the table gives this rank {} elements, the buffer holds {}",
                      counts[static_cast<std::size_t>(rank_)], receive.count));
  return issue(std::move(operation));
}

Handle Communicator::all_to_all(ConstBufferView send, BufferView receive) {
  Operation operation{OperationKind::all_to_all, Reduction::sum, send, receive, 0, {}, {}};
  check_types(operation);
  require(send.count == receive.count, operation, fmt::format("receives {} elements", receive.count));
  require(send.count % size_ == 0, operation, fmt::format("cannot be cut into {} equal parts", size_));
  require(!overlap(send, receive), operation, "the buffers overlap");
  return issue(std::move(operation));
}

Handle Communicator::all_to_all(ConstBufferView send, std::span<const std::int64_t> send_counts, BufferView receive,
                                std::span<const std::int64_t> receive_counts) {
  Operation operation{OperationKind::all_to_all,
                      Reduction::sum,
                      send,
                      receive,
                      0,
                      {send_counts.begin(), send_counts.end()},
                      {receive_counts.begin(), receive_counts.end()}};
  check_types(operation);
  check_table(operation, operation.send_counts, send.count, size_);
  check_table(operation, operation.receive_counts, receive.count, size_);
  require(!overlap(send, receive), operation, "the buffers overlap");
  return issue(std::move(operation));
}

Handle Communicator::broadcast(BufferView buffer, int root) {
  Operation operation{OperationKind::broadcast, Reduction::sum, buffer, buffer, root, {}, {}};
  check_peer(operation, size_);
  return issue(std::move(operation));
}

Handle Communicator::send(ConstBufferView buffer, int to) {
  Operation operation{OperationKind::send, Reduction::sum, buffer, {}, to, {}, {}};
  check_peer(operation, size_);
  require(to != rank_, operation, "a rank cannot send to itself");
  return issue(std::move(operation));
}

Handle Communicator::receive(BufferView buffer, int from) {
  Operation operation{OperationKind::receive, Reduction::sum, {}, buffer, from, {}, {}};
  check_peer(operation, size_);
  require(from != rank_, operation, "a rank cannot receive from itself");
  return issue(std::move(operation));
}

Handle Communicator::barrier() {
  return issue({OperationKind::barrier, Reduction::sum, {}, {}, 0, {}, {}});
}

}  // namespace reckon
