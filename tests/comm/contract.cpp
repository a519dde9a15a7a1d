#include "tests/comm/contract.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "runtime/comm/reduce.h"
#include "runtime/device/bfloat16.h"

namespace reckon {
namespace {

// 0, 1, a count that divides by no rank number, the inline limit of 32 KiB from both sides, and several pieces.
const std::vector<std::int64_t> kCounts{0, 1, 7, 1000, 8191, 8193, 100003};

/// Element i of rank r: 0 to 31, so that a sum over 8 ranks stays below 256, exact even in BF16.
std::int64_t number(int rank, std::int64_t i) {
  return (i * 7 + rank * 13) % 32;
}

std::int64_t sum_of_numbers(int ranks, std::int64_t i) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += number(rank, i);
  return sum;
}

std::int64_t maximum_of_numbers(int ranks, std::int64_t i) {
  std::int64_t maximum = 0;
  for (int rank = 0; rank < ranks; ++rank) maximum = std::max(maximum, number(rank, i));
  return maximum;
}

/// A buffer of any element type that is written and read as integers.
struct Numbers {
  Numbers(ElementType type_, std::int64_t count_)
      : type(type_), count(count_), bytes(static_cast<std::size_t>(count_ * bytes_of(type_)), std::byte{0xee}) {}

  ElementType type;
  std::int64_t count;
  std::vector<std::byte> bytes;

  BufferView view() { return {bytes.data(), count, type}; }
  BufferView part(std::int64_t offset, std::int64_t length) {
    return {bytes.data() + offset * bytes_of(type), length, type};
  }
  template <class Number>
  Number& at(std::int64_t i) {
    return reinterpret_cast<Number*>(bytes.data())[i];
  }
  void set(std::int64_t i, std::int64_t value) {
    switch (type) {
      case ElementType::fp64: at<double>(i) = static_cast<double>(value); break;
      case ElementType::fp32: at<float>(i) = static_cast<float>(value); break;
      case ElementType::bf16: at<std::uint16_t>(i) = bf16_of(static_cast<float>(value)); break;
      case ElementType::int64: at<std::int64_t>(i) = value; break;
      case ElementType::int32: at<std::int32_t>(i) = static_cast<std::int32_t>(value); break;
      case ElementType::uint8: at<std::uint8_t>(i) = static_cast<std::uint8_t>(value); break;
    }
  }
  double get(std::int64_t i) {
    switch (type) {
      case ElementType::fp64: return at<double>(i);
      case ElementType::fp32: return static_cast<double>(at<float>(i));
      case ElementType::bf16: return static_cast<double>(float_of_bf16(at<std::uint16_t>(i)));
      case ElementType::int64: return static_cast<double>(at<std::int64_t>(i));
      case ElementType::int32: return at<std::int32_t>(i);
      case ElementType::uint8: return at<std::uint8_t>(i);
    }
    return 0;
  }
};

Numbers own_numbers(ElementType type, std::int64_t count, int rank) {
  Numbers numbers(type, count);
  for (std::int64_t i = 0; i < count; ++i) numbers.set(i, number(rank, i));
  return numbers;
}

/// Counts the elements that differ, so that a failure is one line.
template <class Expected>
void expect_numbers(Numbers& numbers, Expected expected, const std::string& what) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < numbers.count; ++i)
    if (numbers.get(i) != static_cast<double>(expected(i))) ++wrong;
  EXPECT_EQ(wrong, 0) << what << ", " << numbers.count << " " << name_of(numbers.type) << " elements";
}

const std::vector<ElementType> kSummable{ElementType::fp64, ElementType::fp32, ElementType::bf16, ElementType::int64,
                                         ElementType::int32};

// --- one check per call -------------------------------------------------------------------------------------------

void all_reduce_adds(Communicator& world) {
  for (const ElementType type : kSummable)
    for (const std::int64_t count : kCounts) {
      Numbers in = own_numbers(type, count, world.rank()), out(type, count);
      world.all_reduce(in.view(), out.view()).wait();
      const auto expected = [&](std::int64_t i) { return sum_of_numbers(world.size(), i); };
      expect_numbers(out, expected, "all_reduce");
      expect_numbers(
          in, [&](std::int64_t i) { return number(world.rank(), i); }, "input of all_reduce");
      world.all_reduce(in.view()).wait();
      expect_numbers(in, expected, "all_reduce in place");
    }
}

void all_reduce_takes_maximum(Communicator& world) {
  for (const std::int64_t count : kCounts) {
    Numbers buffer = own_numbers(ElementType::fp32, count, world.rank());
    world.all_reduce(buffer.view(), Reduction::maximum).wait();
    expect_numbers(
        buffer, [&](std::int64_t i) { return maximum_of_numbers(world.size(), i); }, "maximum");
  }
}

void reduce_scatter_adds(Communicator& world) {
  for (const ElementType type : kSummable)
    for (const std::int64_t count : kCounts) {
      Numbers in = own_numbers(type, count * world.size(), world.rank()), out(type, count);
      const std::int64_t offset = world.rank() * count;
      const auto expected = [&](std::int64_t i) { return sum_of_numbers(world.size(), offset + i); };
      world.reduce_scatter(in.view(), out.view()).wait();
      expect_numbers(out, expected, "reduce_scatter");
      world.reduce_scatter(in.view(), in.part(offset, count)).wait();
      Numbers part(type, count);
      std::ranges::copy_n(in.bytes.begin() + offset * bytes_of(type), count * bytes_of(type), part.bytes.begin());
      expect_numbers(part, expected, "reduce_scatter in place");
    }
}

void all_gather_concatenates(Communicator& world) {
  for (const std::int64_t count : kCounts) {
    Numbers in = own_numbers(ElementType::bf16, count, world.rank());
    Numbers out(ElementType::bf16, count * world.size());
    const auto expected = [&](std::int64_t i) { return number(static_cast<int>(i / count), i % count); };
    world.all_gather(in.view(), out.view()).wait();
    expect_numbers(out, expected, "all_gather");
    Numbers both(ElementType::bf16, count * world.size());
    for (std::int64_t i = 0; i < count; ++i) both.set(world.rank() * count + i, number(world.rank(), i));
    world.all_gather(both.part(world.rank() * count, count), both.view()).wait();
    expect_numbers(both, expected, "all_gather in place");
  }
}

/// Uneven parts: as even as possible, and one where rank r has r elements (rank 0 none).
std::vector<std::vector<std::int64_t>> uneven_tables(int ranks) {
  std::vector<std::vector<std::int64_t>> tables;
  for (const std::int64_t count : kCounts) {
    tables.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) tables.back().push_back(even_segment(count, ranks, rank).count);
  }
  tables.emplace_back(static_cast<std::size_t>(ranks));
  std::iota(tables.back().begin(), tables.back().end(), 0);
  return tables;
}

void uneven_reduce_scatter_and_all_gather(Communicator& world) {
  for (const auto& counts : uneven_tables(world.size())) {
    const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    const Segment own = segment_of(counts, total, world.size(), world.rank());
    Numbers in = own_numbers(ElementType::fp32, total, world.rank()), part(ElementType::fp32, own.count);
    Numbers out(ElementType::fp32, total);
    world.reduce_scatter(in.view(), part.view(), counts).wait();
    expect_numbers(
        part, [&](std::int64_t i) { return sum_of_numbers(world.size(), own.offset + i); }, "uneven part");
    world.all_gather(part.view(), out.view(), counts).wait();
    expect_numbers(
        out, [&](std::int64_t i) { return sum_of_numbers(world.size(), i); }, "uneven gather");
  }
}

void all_to_all_transposes(Communicator& world) {
  for (const std::int64_t count : kCounts) {
    Numbers in = own_numbers(ElementType::fp32, count * world.size(), world.rank());
    Numbers out(ElementType::fp32, count * world.size());
    world.all_to_all(in.view(), out.view()).wait();
    const auto expected = [&](std::int64_t i) {
      return number(static_cast<int>(i / count), world.rank() * count + i % count);
    };
    expect_numbers(out, expected, "all_to_all");
  }
}

/// Rank r sends (r + 2 to) % 5 * scale elements to rank `to`; some pairs exchange nothing.
std::int64_t elements_between(int from, int to, std::int64_t scale) {
  return (from + 2 * to) % 5 * scale;
}

void all_to_all_with_uneven_parts(Communicator& world) {
  for (const std::int64_t scale : {1, 3001}) {
    std::vector<std::int64_t> send_counts, receive_counts, source_offset;
    for (int peer = 0; peer < world.size(); ++peer) {
      send_counts.push_back(elements_between(world.rank(), peer, scale));
      receive_counts.push_back(elements_between(peer, world.rank(), scale));
      source_offset.push_back(0);
      for (int before = 0; before < world.rank(); ++before)
        source_offset.back() += elements_between(peer, before, scale);
    }
    Numbers in = own_numbers(ElementType::bf16, std::reduce(send_counts.begin(), send_counts.end()), world.rank());
    Numbers out(ElementType::bf16, std::reduce(receive_counts.begin(), receive_counts.end()));
    world.all_to_all(in.view(), send_counts, out.view(), receive_counts).wait();
    std::vector<std::int64_t> expected;
    for (int peer = 0; peer < world.size(); ++peer)
      for (std::int64_t i = 0; i < receive_counts[static_cast<std::size_t>(peer)]; ++i)
        expected.push_back(number(peer, source_offset[static_cast<std::size_t>(peer)] + i));
    expect_numbers(
        out, [&](std::int64_t i) { return expected[static_cast<std::size_t>(i)]; }, "uneven all_to_all");
  }
}

void broadcast_from_every_rank(Communicator& world) {
  for (const std::int64_t count : kCounts)
    for (int root = 0; root < world.size(); ++root) {
      Numbers buffer = own_numbers(ElementType::uint8, count, world.rank());
      world.broadcast(buffer.view(), root).wait();
      expect_numbers(
          buffer, [&](std::int64_t i) { return number(root, i); }, "broadcast");
    }
}

void messages_travel_both_ways_and_keep_their_order(Communicator& world) {
  if (world.size() == 1) return;
  const int next = (world.rank() + 1) % world.size(), previous = (world.rank() + world.size() - 1) % world.size();
  constexpr int kMessages = 11;  // more than the channel holds
  for (const std::int64_t count : kCounts) {
    std::vector<Numbers> out, in;
    std::vector<Handle> handles;
    for (int message = 0; message < kMessages; ++message) {
      out.push_back(own_numbers(ElementType::fp32, count, world.rank() + message));
      in.emplace_back(ElementType::fp32, count);
    }
    for (int message = 0; message < kMessages; ++message) {
      handles.push_back(world.send(out[static_cast<std::size_t>(message)].view(), next));
      handles.push_back(world.receive(in[static_cast<std::size_t>(message)].view(), previous));
    }
    for (Handle& handle : handles) handle.wait();
    for (int message = 0; message < kMessages; ++message)
      expect_numbers(
          in[static_cast<std::size_t>(message)], [&](std::int64_t i) { return number(previous + message, i); },
          "message");
  }
}

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();  // one clock for all ranks of a host
}

/// The moment at which the last rank did something, known to all.
std::int64_t moment_of_last_rank(Communicator& world, std::int64_t moment) {
  std::vector<std::int64_t> shared{moment};
  world.broadcast(view(shared), world.size() - 1).wait();
  return shared[0];
}

void barrier_waits_for_the_last(Communicator& world) {
  if (world.rank() == world.size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::int64_t before = now();
  world.barrier().wait();
  const std::int64_t after = now();
  EXPECT_GE(after, moment_of_last_rank(world, before));
}

// --- groups -------------------------------------------------------------------------------------------------------

void split_makes_independent_groups(Communicator& world) {
  const auto parity = world.split(world.rank() % 2, 0, "parity");
  const auto reversed = world.split(0, -world.rank(), "reversed");
  const auto alone = world.split(world.rank() == 0 ? -1 : world.rank(), 0, "alone");
  EXPECT_EQ(parity->size(), (world.size() + 1 - world.rank() % 2) / 2);
  EXPECT_EQ(parity->rank(), world.rank() / 2);
  EXPECT_EQ(parity->name(), "parity");
  EXPECT_EQ(reversed->rank(), world.size() - 1 - world.rank());
  EXPECT_EQ(alone == nullptr, world.rank() == 0);
  for (const std::int64_t count : {3, 20000}) {
    Numbers a = own_numbers(ElementType::fp32, count, world.rank());
    Numbers b(ElementType::fp32, count * reversed->size());
    Handle first = parity->all_reduce(a.view());
    Numbers c = own_numbers(ElementType::fp32, count, world.rank());
    Handle second = reversed->all_gather(c.view(), b.view());
    second.wait();
    first.wait();
    const auto parity_sum = [&](std::int64_t i) {
      std::int64_t sum = 0;
      for (int rank = world.rank() % 2; rank < world.size(); rank += 2) sum += number(rank, i);
      return sum;
    };
    expect_numbers(a, parity_sum, "all_reduce of a half");
    expect_numbers(
        b, [&](std::int64_t i) { return number(world.size() - 1 - static_cast<int>(i / count), i % count); },
        "all_gather in reversed order");
  }
  const auto again = parity->split(0, 0, "again");
  Numbers d = own_numbers(ElementType::fp32, 5, again->rank());
  again->all_reduce(d.view()).wait();
  expect_numbers(
      d, [&](std::int64_t i) { return sum_of_numbers(again->size(), i); }, "group of a group");
}

void many_calls_in_flight_on_two_groups(Communicator& world) {
  const auto other = world.split(0, 0, "other");
  constexpr int kCalls = 40;  // more than the board holds
  std::vector<Numbers> buffers;
  for (int call = 0; call < kCalls; ++call)
    buffers.push_back(own_numbers(ElementType::fp32, 1 + 1500 * (call % 11), world.rank() + call));
  std::vector<Handle> handles;
  for (int call = 0; call < kCalls; ++call) {
    Communicator& group = call % 3 == 0 ? *other : world;
    handles.push_back(group.all_reduce(buffers[static_cast<std::size_t>(call)].view()));
  }
  for (int call = kCalls - 1; call >= 0; --call) handles[static_cast<std::size_t>(call)].wait();
  for (int call = 0; call < kCalls; ++call) {
    const auto expected = [&](std::int64_t i) {
      std::int64_t sum = 0;
      for (int rank = 0; rank < world.size(); ++rank) sum += number(rank + call, i);
      return sum;
    };
    expect_numbers(buffers[static_cast<std::size_t>(call)], expected, "call in flight");
  }
}

// --- order of sums ------------------------------------------------------------------------------------------------

std::vector<float> random_floats(int rank, std::int64_t count) {
  std::mt19937 generator(static_cast<unsigned>(1234 + rank));
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator) * std::exp2(8.0f * normal(generator));
  return values;
}

/// The definition: ((x0 + x1) + x2) + ...
std::vector<float> sum_in_rank_order(int ranks, std::int64_t count) {
  std::vector<float> sum = random_floats(0, count);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<float> next = random_floats(rank, count);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += next[i];
  }
  return sum;
}

void sums_add_in_rank_order_whatever_the_sharding(Communicator& world) {
  for (const std::int64_t count : {5, 4099, 70001}) {
    const std::vector<float> expected = sum_in_rank_order(world.size(), count);
    std::vector<float> reduced = random_floats(world.rank(), count), gathered(reduced.size());
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < world.size(); ++rank) counts.push_back(even_segment(count, world.size(), rank).count);
    std::vector<float> part(static_cast<std::size_t>(counts[static_cast<std::size_t>(world.rank())]));
    world.reduce_scatter(view(std::as_const(reduced)), view(part), counts).wait();
    world.all_gather(view(std::as_const(part)), view(gathered), counts).wait();
    world.all_reduce(view(reduced)).wait();
    EXPECT_EQ(reduced, expected) << "all_reduce of " << count;
    EXPECT_EQ(gathered, expected) << "reduce_scatter and all_gather of " << count;
  }
}

/// 256 + 1 + 1 + ... : BF16 has 8 significant bits, so adding one at a time in BF16 would stay at 256. In FP32 the sum
/// is 256 + (n - 1), rounded once to the even neighbour among multiples of 2.
void bf16_sums_accumulate_in_fp32(Communicator& world) {
  for (const std::int64_t count : {3, 40000}) {
    Numbers buffer(ElementType::bf16, count);
    for (std::int64_t i = 0; i < count; ++i) buffer.set(i, world.rank() == 0 ? 256 : 1);
    world.all_reduce(buffer.view()).wait();
    const std::int64_t exact = 256 + world.size() - 1;
    const std::int64_t rounded = exact % 2 == 0 ? exact : (exact % 4 == 1 ? exact - 1 : exact + 1);
    expect_numbers(
        buffer, [&](std::int64_t) { return rounded; }, "BF16 sum");
  }
}

// --- time and traffic ---------------------------------------------------------------------------------------------

/// Every rank sleeps outside the communicator after the call; the call must be complete before anybody wakes. On a busy
/// machine a rank may be held up for longer than that, so one undisturbed attempt is enough.
void progress_is_made_while_the_caller_computes(Communicator& world) {
  constexpr std::int64_t kCount = 300000;
  constexpr int kAttempts = 20;
  bool complete_early = false;
  for (int attempt = 0; attempt < kAttempts && !complete_early; ++attempt) {
    Numbers buffer = own_numbers(ElementType::fp32, kCount, world.rank());
    world.barrier().wait();
    const std::int64_t start = now();
    Handle handle = world.all_reduce(buffer.view());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double slept = static_cast<double>(now() - start) * 1e-9;
    const OperationTime time = handle.wait();
    std::vector<std::int64_t> late{time.waiting.value + time.moving.value < slept ? 0 : 1};
    world.all_reduce(view(late)).wait();
    complete_early = late[0] == 0;
    expect_numbers(
        buffer, [&](std::int64_t i) { return sum_of_numbers(world.size(), i); }, "background all_reduce");
  }
  EXPECT_TRUE(complete_early) << "in " << kAttempts << " attempts";
}

void waiting_for_peers_is_told_apart_from_moving(Communicator& world) {
  const bool late = world.rank() == world.size() - 1;
  Numbers buffer = own_numbers(ElementType::fp32, 20000, world.rank());
  world.barrier().wait();
  if (late) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::int64_t before = now();
  Handle handle = world.all_reduce(buffer.view());
  const std::int64_t called = now();
  const OperationTime time = handle.wait();
  const std::int64_t complete = now();
  const double awaited = static_cast<double>(moment_of_last_rank(world, before) - called) * 1e-9;
  if (!late) {
    EXPECT_GE(time.waiting.value, awaited);
    EXPECT_GE(time.exposed_waiting.value, awaited - 1e-3);  // wait() began a moment after the call
  }
  EXPECT_LE(time.waiting.value + time.moving.value, static_cast<double>(complete - before) * 1e-9);
  EXPECT_LE(time.exposed_waiting.value + time.exposed_moving.value, static_cast<double>(complete - called) * 1e-9);
}

double bytes_of_entry(const std::vector<TrafficCount>& counts, const std::string& collective, const std::string& dtype,
                      std::int64_t calls) {
  for (const TrafficCount& count : counts)
    if (count.collective == collective && count.dtype == dtype) {
      EXPECT_EQ(count.calls, calls) << collective;
      return count.bytes_per_rank;
    }
  return -1;
}

void traffic_is_counted_by_collective_and_type(Communicator& world) {
  const int n = world.size();
  const auto group = world.split(0, 0, "counted");
  Numbers a(ElementType::fp32, 100 * n), b(ElementType::bf16, 100 * n), c(ElementType::bf16, 100);
  group->all_reduce(a.view(), Reduction::maximum).wait();
  group->all_reduce(a.view(), Reduction::maximum).wait();
  group->all_gather(c.view(), b.view()).wait();
  group->barrier().wait();
  const auto counts = group->traffic();
  EXPECT_EQ(counts.size(), n == 1 ? 0u : 2u);
  if (n == 1) return;
  EXPECT_DOUBLE_EQ(bytes_of_entry(counts, "all_reduce", "fp32", 2), 2 * 2.0 * 400 * (n - 1));  // 2 S (n-1)/n each
  EXPECT_DOUBLE_EQ(bytes_of_entry(counts, "all_gather", "bf16", 1), 200.0 * (n - 1));          // S (n-1)/n
  group->reset_traffic();
  EXPECT_TRUE(group->traffic().empty());
}

void wrong_arguments_are_refused(Communicator& world) {
  Numbers a(ElementType::fp32, 10), b(ElementType::fp32, 11), c(ElementType::bf16, 10);
  EXPECT_THROW((void)world.all_reduce(a.view(), b.view()), std::logic_error);
  EXPECT_THROW((void)world.all_reduce(a.view(), c.view()), std::logic_error);
  EXPECT_THROW((void)world.all_gather(a.view(), Numbers(ElementType::fp32, 10 * world.size() + 1).view()),
               std::logic_error);
  EXPECT_THROW((void)world.all_to_all(a.view(), a.view()), std::logic_error);
  EXPECT_THROW((void)world.broadcast(a.view(), world.size()), std::logic_error);
  EXPECT_THROW((void)world.send(a.view(), world.rank()), std::logic_error);
  EXPECT_THROW((void)world.all_reduce(Numbers(ElementType::uint8, 3).view()), std::logic_error);
}

}  // namespace

const std::vector<ContractCheck>& contract_checks() {
  static const std::vector<ContractCheck> checks{
      {"AllReduceAdds", all_reduce_adds},
      {"AllReduceTakesMaximum", all_reduce_takes_maximum},
      {"ReduceScatterAdds", reduce_scatter_adds},
      {"AllGatherConcatenates", all_gather_concatenates},
      {"UnevenReduceScatterAndAllGather", uneven_reduce_scatter_and_all_gather},
      {"AllToAllTransposes", all_to_all_transposes},
      {"AllToAllWithUnevenParts", all_to_all_with_uneven_parts},
      {"BroadcastFromEveryRank", broadcast_from_every_rank},
      {"MessagesTravelBothWaysAndKeepTheirOrder", messages_travel_both_ways_and_keep_their_order},
      {"BarrierWaitsForTheLast", barrier_waits_for_the_last},
      {"SplitMakesIndependentGroups", split_makes_independent_groups},
      {"ManyCallsInFlightOnTwoGroups", many_calls_in_flight_on_two_groups},
      {"SumsAddInRankOrderWhateverTheSharding", sums_add_in_rank_order_whatever_the_sharding},
      {"Bf16SumsAccumulateInFp32", bf16_sums_accumulate_in_fp32},
      {"ProgressIsMadeWhileTheCallerComputes", progress_is_made_while_the_caller_computes},
      {"WaitingForPeersIsToldApartFromMoving", waiting_for_peers_is_told_apart_from_moving},
      {"TrafficIsCountedByCollectiveAndType", traffic_is_counted_by_collective_and_type},
      {"WrongArgumentsAreRefused", wrong_arguments_are_refused},
  };
  return checks;
}

}  // namespace reckon
