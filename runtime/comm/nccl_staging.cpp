#include "runtime/comm/nccl_staging.h"

#include <algorithm>

#include "runtime/device/cuda_calls.h"

namespace reckon {
namespace {

/// Device memory in place of a run of host memory.
class DeviceCopy {
 public:
  DeviceCopy(const std::byte* first, const std::byte* last, CallPlace place) : host_(first), bytes_(last - first) {
    void* address = nullptr;
    check_cuda(cudaMalloc(&address, static_cast<std::size_t>(bytes_)), "cudaMalloc", place);
    device_ = static_cast<std::byte*>(address);
  }
  ~DeviceCopy() { cudaFree(device_); }  // unchecked: nothing can be done about it here
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;

  bool holds(const std::byte* address) const { return address >= host_ && address <= host_ + bytes_; }
  std::byte* device(const void* address) const { return device_ + (static_cast<const std::byte*>(address) - host_); }

 private:
  const std::byte* host_;
  std::ptrdiff_t bytes_;
  std::byte* device_;
};

class StagedCall final : public PendingOperation {
 public:
  /// Buffers that overlap (calls in place) share their copy.
  StagedCall(const Operation& operation, CallPlace place) : operation_(operation), place_(place) {
    if (!lies_on_host(operation)) return;
    const auto* send = static_cast<const std::byte*>(operation.send.address);
    const auto* receive = static_cast<const std::byte*>(operation.receive.address);
    const std::byte *send_end = send + operation.send.bytes(), *receive_end = receive + operation.receive.bytes();
    const bool shared = send != nullptr && receive != nullptr && send < receive_end && receive < send_end;
    if (shared) {
      copies_[0] = std::make_unique<DeviceCopy>(std::min(send, receive), std::max(send_end, receive_end), place);
      copies_[1] = nullptr;
    } else {
      copies_[0] = std::make_unique<DeviceCopy>(send, send_end, place);
      copies_[1] = std::make_unique<DeviceCopy>(receive, receive_end, place);
    }
    if (operation.receive.bytes() > 0)
      copy(receive_view().address, operation.receive.address, operation.receive.bytes());
    if (operation.send.bytes() > 0)
      copy(const_cast<void*>(send_view().address), operation.send.address, operation.send.bytes());
  }

  ConstBufferView send_view() const {
    if (!copies_[0]) return operation_.send;
    return {copies_[0]->device(operation_.send.address), operation_.send.count, operation_.send.type};
  }
  BufferView receive_view() const {
    if (!copies_[0]) return operation_.receive;
    const DeviceCopy& copy = copies_[1] ? *copies_[1] : *copies_[0];
    return {copy.device(operation_.receive.address), operation_.receive.count, operation_.receive.type};
  }
  void follow(Handle handle) { handle_ = std::move(handle); }

  void wait() override {
    time_ = handle_.wait();
    if (copies_[0] && operation_.receive.bytes() > 0)
      copy(operation_.receive.address, receive_view().address, operation_.receive.bytes());
  }
  bool done() override { return handle_.done(); }
  OperationTime time() const override { return time_; }

 private:
  bool lies_on_host(const Operation& operation) const {
    for (const void* address : {operation.send.address, static_cast<const void*>(operation.receive.address)}) {
      if (address == nullptr) continue;
      cudaPointerAttributes attributes{};
      check_cuda(cudaPointerGetAttributes(&attributes, address), "cudaPointerGetAttributes", place_);
      return attributes.type != cudaMemoryTypeDevice;
    }
    return false;
  }
  void copy(void* to, const void* from, std::int64_t bytes) const {
    check_cuda(cudaMemcpy(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault), "cudaMemcpy", place_);
  }

  Operation operation_;
  CallPlace place_;
  std::unique_ptr<DeviceCopy> copies_[2];
  Handle handle_;  // destroyed first: it waits
  OperationTime time_;
};

class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(Communicator& inner, std::unique_ptr<Communicator> owned, CallPlace place)
      : Communicator(inner.rank(), inner.size(), inner.name()),
        owned_(std::move(owned)),
        inner_(inner),
        place_(place) {}

  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override {
    std::unique_ptr<Communicator> group = inner_.split(color, key, name);
    if (!group) return nullptr;
    Communicator& reference = *group;
    return std::make_unique<StagedCommunicator>(reference, std::move(group), place_);
  }
  void fail(const std::string& message) override { inner_.fail(message); }
  Bytes library_memory() const override { return inner_.library_memory(); }

 private:
  std::shared_ptr<PendingOperation> start(Operation operation) override {
    const auto call = std::make_shared<StagedCall>(operation, place_);
    call->follow(started(operation, call->send_view(), call->receive_view()));
    return call;
  }
  Handle started(const Operation& operation, ConstBufferView send, BufferView receive) {
    switch (operation.kind) {
      case OperationKind::all_reduce: return inner_.all_reduce(send, receive, operation.reduction);
      case OperationKind::all_gather:
        return operation.receive_counts.empty() ? inner_.all_gather(send, receive)
                                                : inner_.all_gather(send, receive, operation.receive_counts);
      case OperationKind::reduce_scatter:
        return operation.send_counts.empty()
                   ? inner_.reduce_scatter(send, receive, operation.reduction)
                   : inner_.reduce_scatter(send, receive, operation.send_counts, operation.reduction);
      case OperationKind::all_to_all:
        return operation.send_counts.empty()
                   ? inner_.all_to_all(send, receive)
                   : inner_.all_to_all(send, operation.send_counts, receive, operation.receive_counts);
      case OperationKind::broadcast: return inner_.broadcast(receive, operation.peer);
      case OperationKind::send: return inner_.send(send, operation.peer);
      case OperationKind::receive: return inner_.receive(receive, operation.peer);
      case OperationKind::barrier: return inner_.barrier();
    }
    return {};
  }

  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
  CallPlace place_;
};

}  // namespace

std::unique_ptr<Communicator> staged(Communicator& device_communicator, CallPlace place) {
  return std::make_unique<StagedCommunicator>(device_communicator, nullptr, place);
}

}  // namespace reckon
