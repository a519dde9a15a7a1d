#include "sim/step_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/errors.h"
#include "plan/rank_grid.h"
#include "plan/state_calls.h"
#include "plan/state_traffic.h"
#include "sim/task_writer.h"

namespace reckon {
namespace {

std::string collective_name(Group group, Collective collective) {
  return std::string(name_of(group)) + "." + std::string(name_of(collective));
}

bool reduces(const CollectiveCall& call) {
  return call.collective == Collective::all_reduce || call.collective == Collective::reduce_scatter;
}

std::vector<SectionPlay> section_plays(const Plan& plan, const OpTimes& times, const StageGraph& stage, int rank) {
  const SectionWeights weights = section_weights(plan);
  std::vector<SectionPlay> plays(kSectionVariants);
  for (const auto& chunk : stage.chunks) {
    for (const StageSection& section : chunk) {
      SectionPlay& play = plays[variant(section)];
      if (play.times != nullptr) continue;
      play.times = &times.of(section.kind);
      play.kept =
          kept_tensors(plan, play.times->list, section.recomputed ? plan.activations.recompute : Recompute::none, rank);
      play.storage = storage_times(play.times->list, play.kept, times.storage);
      play.weights = weights[static_cast<std::size_t>(section.kind)];
    }
  }
  return plays;
}

/// Builds the program of one stage.
class StageBuilder {
 public:
  StageBuilder(const Plan& plan, const OpTimes& times, const RankGrid& grid, Labels& labels, std::int64_t stage)
      : plan_(plan), times_(times), grid_(grid), labels_(labels), stage_(stage), write_(graph_) {
    graph_.chunks = stage_sections(plan, stage);
    graph_.plays = section_plays(plan, times, graph_, static_cast<int>(stage));
    for (const auto& chunk : graph_.chunks)
      for (const StageSection& section : chunk) stage_weights_ += graph_.play_of(section).weights;
  }

  StageGraph build() {
    const auto& parallel = plan_.parallel;
    for (const Action& action :
         pipeline_actions(parallel.schedule, static_cast<int>(parallel.pipeline), static_cast<int>(stage_),
                          static_cast<int>(parallel.chunks), static_cast<int>(plan_.micro_batches())))
      action.kind == ActionKind::forward ? forward(action) : backward(action);
    end_of_step();
    return std::move(graph_);
  }

 private:
  std::int64_t virtual_stage(const Action& action) const { return action.chunk * plan_.parallel.pipeline + stage_; }

  void forward(const Action& action) {
    note(action, kNoLayer);
    if (virtual_stage(action) > 0) write_.wait_for({kStreams + kActivations, ++activations_received_});
    const auto& sections = graph_.chunks[static_cast<std::size_t>(action.chunk)];
    Wait gathered = gather(sections.empty() ? nullptr : &sections.front());
    for (std::size_t i = 0; i < sections.size(); ++i) {
      note(action, sections[i].layer);
      write_.wait_for(gathered);
      gathered = gather(i + 1 < sections.size() ? &sections[i + 1] : nullptr);
      forward_section(action, i);
    }
    if (virtual_stage(action) + 1 < plan_.virtual_stages()) send(action, kSendForward, kSendForwardPort, stage_);
  }

  void backward(const Action& action) {
    note(action, kNoLayer);
    if (virtual_stage(action) + 1 < plan_.virtual_stages())
      write_.wait_for({kStreams + kGradients, ++gradients_received_});
    const auto& sections = graph_.chunks[static_cast<std::size_t>(action.chunk)];
    Wait gathered = gather(sections.empty() ? nullptr : &sections.back());
    Wait reduced;
    for (std::size_t i = sections.size(); i-- > 0;) {
      note(action, sections[i].layer);
      write_.wait_for(gathered);
      gathered = gather(i > 0 ? &sections[i - 1] : nullptr);
      backward_section(action, i);
      write_.wait_for(reduced);  // one reduction at a time, so that at most two whole gradients are alive
      reduced = reduce_section(action, sections[i]);
    }
    write_.wait_for(reduced);  // ZeRO-2, 3: the action ends when its gradients have gone to their shards
    if (virtual_stage(action) > 0)
      send(action, kSendBackward, kSendBackwardPort, (stage_ + plan_.parallel.pipeline - 1) % plan_.parallel.pipeline);
  }

  // ---- sections

  void forward_section(const Action& action, std::size_t index) {
    const SectionPlay& play = graph_.play_of(graph_.chunks[static_cast<std::size_t>(action.chunk)][index]);
    for (std::size_t op = 0; op < play.times->ops.size(); ++op) forward_op(action, index, play, op, Phase::forward);
    write_.compute(labels_.of("forward.quantize"), play.storage.quantize);
  }

  void backward_section(const Action& action, std::size_t index) {
    const SectionPlay& play = graph_.play_of(graph_.chunks[static_cast<std::size_t>(action.chunk)][index]);
    write_.compute(labels_.of("backward.dequantize"), play.storage.dequantize);
    for (const int op : play.kept.recomputed_ops)
      forward_op(action, index, play, static_cast<std::size_t>(op), Phase::recompute);
    for (std::size_t op = play.times->ops.size(); op-- > 0;) backward_op(action, index, play, op);
  }

  /// Collectives of a forward op follow it, and the next op waits for them; blocks on the ring are passed meanwhile.
  void forward_op(const Action& action, std::size_t section, const SectionPlay& play, std::size_t index, Phase phase) {
    const Op& op = play.times->list.ops[index];
    const OpTime& time = play.times->ops[index];
    const int first = write_.compute_tasks();
    const auto& calls = op.forward_collectives;
    if (op.kind == OpKind::attention && action.micro_batch == 0) ++forward_attention_;
    std::vector<Wait> beside;
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (is_beside(calls[i])) beside.push_back(collective(calls[i], time.forward_collectives[i]));
    write_.compute(label(phase == Phase::forward ? "forward." : "recompute.", op), time.forward);
    for (const Wait wait : beside) write_.wait_for(wait);
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (!is_beside(calls[i])) write_.wait_for(collective(calls[i], time.forward_collectives[i]));
    record(action, section, index, phase, first);
  }

  /// In the backward of a column-parallel product the repeated gather of its input goes on beside the input gradient,
  /// and the reduction of the input gradient beside the weight gradient. Other collectives precede the op.
  void backward_op(const Action& action, std::size_t section, const SectionPlay& play, std::size_t index) {
    const Op& op = play.times->list.ops[index];
    const OpTime& time = play.times->ops[index];
    const int first = write_.compute_tasks();
    const auto& calls = op.backward_collectives;
    if (op.kind == OpKind::attention && action.micro_batch == 0) ++backward_attention_;
    const bool column_parallel = op.kind == OpKind::gemm && std::any_of(calls.begin(), calls.end(), reduces);
    std::vector<Wait> gathers, reductions;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!column_parallel && !is_beside(calls[i])) write_.wait_for(collective(calls[i], time.backward_collectives[i]));
      else if (!reduces(calls[i])) gathers.push_back(collective(calls[i], time.backward_collectives[i]));
    }
    write_.compute(label("backward.", op), time.input_gradient);
    for (const Wait wait : gathers) write_.wait_for(wait);
    for (std::size_t i = 0; column_parallel && i < calls.size(); ++i)
      if (reduces(calls[i])) reductions.push_back(collective(calls[i], time.backward_collectives[i]));
    write_.compute(label("backward.", op), time.weight_gradient);
    for (const Wait wait : reductions) write_.wait_for(wait);
    record(action, section, index, Phase::backward, first);
  }

  Wait collective(const CollectiveCall& call, Seconds time) {
    count(call);
    return write_.beside(stream_of(call.group), port_of(call.group),
                         labels_.of(collective_name(call.group, call.collective)), time);
  }

  // ---- between sections and stages

  /// ZeRO-3: gathers a section's parameters; the returned wait is their arrival.
  Wait gather(const StageSection* section) {
    if (section == nullptr) return {};
    const Seconds time = graph_.play_of(*section).times->parameter_gather;
    if (time.value <= 0.0) return {};
    return write_.beside(kStates, kGatherPort, labels_.of("parameter.all_gather"), time);
  }

  /// Gradients of a section that has just been through backward: ZeRO-2 and 3 reduce them at once; otherwise they fill
  /// buckets, which the last micro-batch reduces as they get full.
  Wait reduce_section(const Action& action, const StageSection& section) {
    if (plan_.parallel.zero >= 2) {
      const Seconds time = graph_.play_of(section).times->gradient_reduce;
      if (time.value <= 0.0) return {};
      return write_.beside(kStates, kReducePort, labels_.of(reduction_component(plan_)), time);
    }
    if (action.micro_batch + 1 < plan_.micro_batches()) return {};
    reduced_weights_ += graph_.play_of(section).weights.total();
    const auto full = static_cast<std::int64_t>(static_cast<double>(buckets()) * static_cast<double>(reduced_weights_) /
                                                static_cast<double>(stage_weights_.total()));
    while (buckets_sent_ < full) reduce_bucket();
    return {};
  }

  std::int64_t buckets() const {
    return std::max<std::int64_t>(1, times_.reduce_calls[static_cast<std::size_t>(stage_)]);
  }

  void reduce_bucket() {
    ++buckets_sent_;
    const Seconds all = times_.gradient_reduce[static_cast<std::size_t>(stage_)];
    if (all.value <= 0.0) return;
    last_bucket_ = write_.beside(kStates, kReducePort, labels_.of(reduction_component(plan_)),
                                 all * (1.0 / static_cast<double>(buckets())));
  }

  void send(const Action& action, Stream stream, Port port, std::int64_t edge) {
    note(action, kNoLayer);
    count(stage_message(plan_));
    write_.beside(stream, port, labels_.of("pipeline.send_receive"),
                  times_.pipeline_send[static_cast<std::size_t>(edge)]);
  }

  /// The last buckets, the tied table, the gradient norm (which joins all stages), the update, the parameters.
  void end_of_step() {
    write_.set_note({});
    while (plan_.parallel.zero < 2 && buckets_sent_ < buckets()) reduce_bucket();
    write_.wait_for(last_bucket_);
    for (const StateTraffic& sent : state_traffic(plan_, stage_)) count(sent);
    for (const StateTraffic& sent : ring_traffic(plan_, times_.ring, forward_attention_, backward_attention_))
      count(sent);
    const bool holds_tied_table = stage_ == 0 || stage_ == plan_.parallel.pipeline - 1;
    if (times_.tied_table_reduce.value > 0.0 && holds_tied_table) {
      write_.blocking(kWorld, kEmbeddingPort, labels_.of("embedding.all_reduce"), times_.tied_table_reduce);
    }
    write_.blocking(kWorld, kWorldPort, labels_.of("waiting"), Seconds(0.0));
    const auto stage = static_cast<std::size_t>(stage_);
    write_.compute(labels_.of("optimizer"), times_.optimizer[stage]);
    if (times_.parameter_gather[stage].value > 0.0) {
      write_.blocking(kStates, kGatherPort, labels_.of("parameter.all_gather"), times_.parameter_gather[stage]);
    }
  }

  // ---- bookkeeping

  int label(const char* phase, const Op& op) { return labels_.of(phase + std::string(op.name)); }
  void note(const Action& action, std::int64_t layer) { write_.set_note({action.micro_batch, action.chunk, layer}); }

  void record(const Action& action, std::size_t section, std::size_t op, Phase phase, int first_task) {
    graph_.runs.push_back({phase, action.micro_batch, action.chunk, static_cast<std::int32_t>(section),
                           static_cast<std::int32_t>(op), first_task, write_.compute_tasks()});
  }

  void count(const CollectiveCall& call) {
    if (call.group == Group::ring) return;  // rank by rank, at the step's end
    const auto ranks = static_cast<int>(grid_.size(call.group));
    count({call.group, call.collective, std::string(name_of(call.fp32 ? NumberFormat::fp32 : tensor_format(plan_))),
           call.calls, bytes_sent_per_rank(call.collective, call.bytes, ranks) * call.calls});
  }
  void count(const StateTraffic& sent) {
    for (StateTraffic& known : graph_.traffic) {
      if (known.group != sent.group || known.collective != sent.collective || known.dtype != sent.dtype) continue;
      known.calls += sent.calls;
      known.bytes_sent += sent.bytes_sent;
      return;
    }
    graph_.traffic.push_back(sent);
  }

  const Plan& plan_;
  const OpTimes& times_;
  const RankGrid& grid_;
  Labels& labels_;
  std::int64_t stage_;
  StageGraph graph_;
  TaskWriter write_;
  std::int32_t activations_received_ = 0, gradients_received_ = 0;
  std::int64_t forward_attention_ = 0, backward_attention_ = 0;  // passes of one micro-batch
  std::int64_t reduced_weights_ = 0, buckets_sent_ = 0;
  WeightElements stage_weights_;
  Wait last_bucket_;
};

/// Tasks of compute streams and collectives of all stages, before they are made: some hundred bytes each.
void check_size(const Plan& plan, const OpTimes& times) {
  constexpr double kMostTasks = 1 << 24;
  const auto tasks_of = [](const SectionTimes& section) {
    double tasks = 0;
    for (const OpTime& op : section.ops)
      tasks += 2 + static_cast<double>(op.forward_collectives.size() + op.backward_collectives.size());
    return tasks;
  };
  const double layer = std::max(tasks_of(times.dense_layer), tasks_of(times.moe_layer)),
               micro_batches = static_cast<double>(plan.micro_batches());
  const double tasks = micro_batches * (layer * static_cast<double>(plan.model.layers) + tasks_of(times.embedding) +
                                        tasks_of(times.head));
  if (tasks > kMostTasks)
    throw RuleError({{fmt::format("{:.0f} micro-batches through {} layers are {:.2g} tasks; at most {:.2g} can be "
                                  "simulated; raise batch.micro_batch or parallel.data, or ask `reckon plan`",
                                  micro_batches, plan.model.layers, tasks, kMostTasks),
                      {},
                      0,
                      0,
                      "batch.micro_batch"}});
}

}  // namespace

int Labels::of(std::string_view name) {
  const auto [place, is_new] = index_.try_emplace(std::string(name), size());
  if (is_new) names_.emplace_back(name);
  return place->second;
}

StepGraph build_step_graph(const Plan& plan, const OpTimes& times) {
  check_size(plan, times);
  const RankGrid grid(plan.parallel);
  StepGraph graph;
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage)
    graph.stages.push_back(StageBuilder(plan, times, grid, graph.labels, stage).build());
  return graph;
}

}  // namespace reckon
