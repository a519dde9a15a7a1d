#include "plan/state_traffic.h"

#include <utility>

#include "plan/parameter_layout.h"
#include "plan/rank_grid.h"
#include "plan/reduction_buffers.h"
#include "plan/replicated_weights.h"
#include "plan/stage_units.h"

namespace reckon {

namespace {

/// Ranks that share one flat buffer.
struct Buffer {
  Group all, shard;  // without and with ZeRO
  std::int64_t shards = 1;
  std::vector<EqualUnits> units;
};

class Counter {
 public:
  explicit Counter(const Plan& plan) : plan_(plan), grid_(plan), by_node_(exchanges_by_node(plan)) {}

  void add(Group group, Collective collective, NumberFormat format, double bytes, std::int64_t calls) {
    add_over(grid_.size(group), group, collective, format, bytes, calls);
  }
  void add_over(std::int64_t ranks, Group group, Collective collective, NumberFormat format, double bytes,
                std::int64_t calls) {
    if (ranks <= 1 || bytes <= 0.0 || calls <= 0) return;
    const std::string dtype = is_block_scaled(format) ? "uint8" : std::string(name_of(format));
    const double sent =
        bytes_sent_per_rank(collective, Bytes(static_cast<std::int64_t>(bytes)), static_cast<int>(ranks));
    for (StateTraffic& entry : entries_) {
      if (entry.group != group || entry.collective != collective || entry.dtype != dtype) continue;
      entry.calls += calls;
      entry.bytes_sent += sent * static_cast<double>(calls);
      return;
    }
    entries_.push_back({group, collective, dtype, calls, sent * static_cast<double>(calls)});
  }

  /// `calls` sums of `elements` gradients, of which a rank wants its part or the whole.
  void add_sum(Group group, std::int64_t elements, std::int64_t calls, bool whole) {
    if (reduction_path(plan_, elements) == ReductionPath::exchanged) {
      add_exchange(group, elements, calls, Collective::all_to_all);
      if (whole) add_exchange(group, elements, calls, Collective::all_gather);
      return;
    }
    add(group, whole ? Collective::all_reduce : Collective::reduce_scatter, plain_wire(plan_),
        bytes_of(elements, plain_wire(plan_)), calls);
  }

  /// One way of an exchange: everything inside the node, and between nodes what became of the node's part.
  void add_exchange(Group group, std::int64_t elements, std::int64_t calls, Collective collective) {
    const Storage wire = gradient_wire(plan_);
    const std::int64_t ranks = grid_.size(group);
    const std::int64_t part = elements / ranks;
    const auto bytes = static_cast<double>(ranks * storage_bytes(wire, part).value);
    if (!by_node_ || (group != Group::gradient && group != Group::shard))
      return add(group, collective, wire.format, bytes, calls);
    add(Group::gradient_inside, collective, wire.format, bytes, calls);
    add(Group::gradient_across, collective, wire.format,
        bytes / static_cast<double>(grid_.size(Group::gradient_inside)), calls);
  }

  void add_gather(Group group, std::int64_t elements, std::int64_t calls) {
    add(group, Collective::all_gather, tensor_format(plan_), bytes_of(elements, tensor_format(plan_)), calls);
  }

  std::vector<StateTraffic> take() { return std::move(entries_); }

 private:
  static double bytes_of(std::int64_t elements, NumberFormat format) {
    return static_cast<double>(storage_bytes({format}, elements).value);
  }

  const Plan& plan_;
  RankGrid grid_;
  bool by_node_;
  std::vector<StateTraffic> entries_;
};

void add_buffer(const Plan& plan, const Buffer& buffer, Counter& counter) {
  const int zero = plan.parallel.zero;
  const std::int64_t micro_batches = plan.micro_batches();
  const bool sharded = zero > 0 && buffer.shards > 1;
  for (const EqualUnits& units : buffer.units) {
    const std::int64_t reductions = zero >= 2 && sharded ? units.count * micro_batches
                                    : units.borrowed     ? 0
                                                         : units.count;
    if (zero == 0 || sharded)
      counter.add_sum(zero == 0 ? buffer.all : buffer.shard, units.elements, reductions, zero == 0);
    if (!sharded && zero == 0) continue;
    if (sharded && zero >= 3) counter.add_gather(buffer.shard, units.elements, 2 * units.count * micro_batches);
    if (sharded && zero < 3 && !units.borrowed) counter.add_gather(buffer.shard, units.elements, units.count);
    if (buffer.shard == Group::shard && !units.borrowed)
      counter.add_sum(Group::replica, units.elements / buffer.shards, units.count, true);
  }
}

/// The table that both ends of a pipeline use: the whole, or the shard where sections are units.
void add_tied_table(const Plan& plan, std::int64_t stage, Counter& counter) {
  const ParallelSpec& parallel = plan.parallel;
  const SectionElements elements = section_elements(plan.model, parallel.tensor, parallel.expert);
  if (parallel.pipeline == 1 || (stage != 0 && stage + 1 != parallel.pipeline)) return;
  std::int64_t table = elements.tied_table;
  if (divides_by_section(plan)) table = round_up(table, reduction_parts(plan)) / zero_shards(parallel);
  counter.add(Group::embedding, Collective::all_reduce, NumberFormat::fp32, 4.0 * static_cast<double>(table), 1);
}

/// Weights that tensor ranks hold alike: one message for each group, of the shard that holds most of them.
void add_replicated(const Plan& plan, std::int64_t stage, Counter& counter) {
  const ParallelSpec& parallel = plan.parallel;
  const std::int64_t key_value = key_value_replicas(plan);
  if (parallel.tensor == 1 || (!parallel.sequence && key_value == 1 && !plan.model.qk_norm)) return;
  const ParameterLayout layout = parameter_layout(plan, {.pipeline = stage});
  const std::vector<std::int64_t> norms = replicated_elements(plan, layout, Split::replicated);
  const std::vector<std::int64_t> heads = replicated_elements(plan, layout, Split::kv_rows);
  const auto sent = [&](std::size_t shard) {
    return bytes_sent_per_rank(Collective::all_reduce, Bytes(4 * norms[shard]), static_cast<int>(parallel.tensor)) +
           bytes_sent_per_rank(Collective::all_reduce, Bytes(4 * heads[shard]), static_cast<int>(key_value));
  };
  std::size_t most = 0;
  for (std::size_t shard = 1; shard < norms.size(); ++shard)
    if (sent(shard) > sent(most)) most = shard;
  const auto add = [&](std::int64_t ranks, std::int64_t elements) {
    counter.add_over(ranks, Group::tensor, Collective::all_reduce, NumberFormat::fp32,
                     4.0 * static_cast<double>(elements), 1);
  };
  add(parallel.tensor, norms[most]);
  add(key_value, heads[most]);
}

}  // namespace

std::vector<StateTraffic> state_traffic(const Plan& plan, std::int64_t stage) {
  Counter counter(plan);
  add_buffer(plan, {Group::gradient, Group::shard, zero_shards(plan.parallel), stage_units(plan, stage)}, counter);
  if (plan.parallel.expert > 1)
    add_buffer(plan,
               {Group::expert_gradient, Group::expert_gradient, expert_zero_shards(plan.parallel),
                stage_expert_units(plan, stage)},
               counter);
  add_tied_table(plan, stage, counter);
  add_replicated(plan, stage, counter);
  return counter.take();
}

}  // namespace reckon
