// Collectives over one group of ranks: the one interface that the threads, MPI and NCCL backends implement.
//
// Every call returns at once with a Handle; progress is made while the caller computes. All ranks of a group must make
// the same calls in the same order; a call that differs on two ranks, and a rank that does not call within the
// timeout, end the run with an error naming ranks, call and sizes.
//
// Sums add in rank order, ((x0 + x1) + x2) + ..., BF16 in FP32 with one rounding at the end. So results depend on
// neither the backend nor the sharding: all_reduce equals reduce_scatter + all_gather bit for bit.
//
// One thread of a rank makes the calls. n = size() below; counts are elements.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/comm/buffer_view.h"
#include "runtime/comm/handle.h"
#include "runtime/comm/operation.h"
#include "runtime/comm/traffic.h"

namespace reckon {

struct CommunicatorOptions {
  Seconds timeout{60.0};      // a rank silent for longer ends the run
  bool shared_memory = true;  // mpi: false = messages also between ranks of one host
  /// threads: tells the failure that ends the process while a rank is stuck, and returns the exit code. Without it the
  /// failure is written to standard error.
  std::function<int(std::exception_ptr failure)> tell_last_failure = {};
  bool library_sums = false;  // nccl: NCCL's own sums, in an order of its choice; false = rank order, as everywhere
  bool separate_waiting =
      true;  // nccl: a pulse before each collective tells waiting from moving; false = all is moving
  void* compute_stream =
      nullptr;  // nccl: the cudaStream_t whose work a call's buffers wait for; null = the default one
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Name of the group in messages and traffic entries: "world", "tensor", ...
  const std::string& name() const { return name_; }

  /// receive[i] = sum over ranks of send[i]. Equal counts; may be in place (same address).
  Handle all_reduce(ConstBufferView send, BufferView receive, Reduction reduction = Reduction::sum);
  Handle all_reduce(BufferView buffer, Reduction reduction = Reduction::sum) {
    return all_reduce(buffer, buffer, reduction);
  }

  /// receive = concatenation of every rank's send; receive.count = n * send.count. In place: send = own part of
  /// receive.
  Handle all_gather(ConstBufferView send, BufferView receive);
  /// Variable: `counts[r]` elements from rank r, the same table on all ranks.
  Handle all_gather(ConstBufferView send, BufferView receive, std::span<const std::int64_t> counts);

  /// receive = part `rank` of the sum; send.count = n * receive.count. In place: receive = own part of send.
  Handle reduce_scatter(ConstBufferView send, BufferView receive, Reduction reduction = Reduction::sum);
  Handle reduce_scatter(ConstBufferView send, BufferView receive, std::span<const std::int64_t> counts,
                        Reduction reduction = Reduction::sum);

  /// Part r of send goes to rank r; part r of receive comes from rank r. Never in place.
  Handle all_to_all(ConstBufferView send, BufferView receive);
  Handle all_to_all(ConstBufferView send, std::span<const std::int64_t> send_counts, BufferView receive,
                    std::span<const std::int64_t> receive_counts);

  Handle broadcast(BufferView buffer, int root);

  /// Messages between two ranks match in the order of their calls. A send is complete when it has been received: where
  /// two ranks send to each other, issue all calls first and wait afterwards.
  Handle send(ConstBufferView buffer, int to);
  Handle receive(BufferView buffer, int from);

  /// Complete when all ranks have called it.
  Handle barrier();

  /// Collective: ranks with the same colour form a group, ordered by key, then by rank here. A negative colour joins
  /// none and gets nullptr.
  virtual std::unique_ptr<Communicator> split(int color, int key, const std::string& name) = 0;

  /// Ends the run for every rank: their waits throw RunError with this text.
  virtual void fail(const std::string& message) = 0;

  /// Device memory that the library took for this group; zero for CPUs.
  virtual Bytes library_memory() const { return {}; }

  /// What this rank has sent in this group since the last reset.
  std::vector<TrafficCount> traffic() const { return traffic_.counts(); }
  void reset_traffic() { traffic_.reset(); }

 protected:
  Communicator(int rank, int size, std::string name) : rank_(rank), size_(size), name_(std::move(name)) {}
  /// Starts a call whose arguments have been checked.
  virtual std::shared_ptr<PendingOperation> start(Operation operation) = 0;

 private:
  Handle issue(Operation operation);

  int rank_, size_;
  std::string name_;
  TrafficCounter traffic_;
};

}  // namespace reckon
