#include "cost_model/stage_memory.h"

#include <algorithm>

namespace reckon {

namespace {

bool has_section(const ModelSpec& model, Section section) {
  if (section == Section::embedding || section == Section::head) return true;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (model.layer_is_moe(layer) == (section == Section::moe_layer)) return true;
  return false;
}

WeightElements section_weights(const Plan& plan, const SectionElements& elements, Section section) {
  switch (section) {
    case Section::embedding: return {elements.embedding, 0};
    case Section::dense_layer: return {elements.dense_layer, 0};
    case Section::moe_layer:
      if (plan.parallel.expert == 1) return {elements.moe_layer + elements.layer_experts, 0};
      return {elements.moe_layer, elements.layer_experts};
    case Section::head: return {elements.head + (plan.parallel.pipeline > 1 ? elements.tied_table : 0), 0};
  }
  return {};
}

/// Highest moment of one chunk's forward or backward, and what the chunk keeps afterwards.
struct ChunkMemory {
  Bytes kept;
  MemoryMoment forward, backward;
};

void raise(MemoryMoment& highest, const MemoryMoment& moment) {
  if (moment.total() > highest.total()) highest = moment;
}

class ChunkWalk {
 public:
  ChunkWalk(const Plan& plan, const SectionTable& table) : plan_(plan), table_(table) {}

  ChunkMemory walk(const ChunkRuns& runs) const {
    ChunkMemory chunk;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const SectionTable::Row& row = table_(runs[i]);
      const SectionTable::Row* before = i > 0 ? &table_(runs[i - 1]) : nullptr;
      const SectionTable::Row* after = i + 1 < runs.size() ? &table_(runs[i + 1]) : nullptr;
      const std::int64_t count = runs[i].count;
      if (count > 1) {  // the last but one has an equal neighbour behind it
        const Bytes earlier = chunk.kept + (count - 2) * row.memory.kept;
        raise(chunk.forward, moment(earlier, row.memory.forward, gathered(row, &row)));
        raise(chunk.backward,
              moment(earlier, row.memory.backward, gathered(row, count > 2 ? &row : before) + whole_gradient(row)));
      }
      const Bytes earlier = chunk.kept + (count - 1) * row.memory.kept;
      raise(chunk.forward, moment(earlier, row.memory.forward, gathered(row, after)));
      raise(chunk.backward,
            moment(earlier, row.memory.backward, gathered(row, count > 1 ? &row : before) + whole_gradient(row)));
      chunk.kept += count * row.memory.kept;
    }
    return chunk;
  }

 private:
  static MemoryMoment moment(Bytes earlier, const MemoryMoment& own, Bytes parameters) {
    return {earlier + own.kept, own.transient + parameters};
  }
  Bytes gathered(const SectionTable::Row& row, const SectionTable::Row* next) const {
    if (plan_.parallel.zero < 3) return Bytes(0);
    return weight_bytes(plan_, row.weights.total() + (next ? next->weights.total() : 0));
  }
  Bytes whole_gradient(const SectionTable::Row& row) const {
    return plan_.parallel.zero < 2 ? Bytes(0) : gradient_bytes(plan_, row.weights.total());
  }

  const Plan& plan_;
  const SectionTable& table_;
};

}  // namespace

SectionTable section_table(const Plan& plan, const AttentionWork& work, std::int64_t stage) {
  const SectionElements elements = section_elements(plan.model, plan.parallel.tensor, plan.parallel.expert);
  SectionTable table;
  for (const Section section : {Section::embedding, Section::dense_layer, Section::moe_layer, Section::head}) {
    if (!has_section(plan.model, section)) continue;
    const OpList list = section_ops(plan, section, work);
    const bool layer = section == Section::dense_layer || section == Section::moe_layer;
    for (const bool recomputed : {false, true}) {
      const Recompute mode = recomputed && layer ? plan.activations.recompute : Recompute::none;
      auto& row = table.rows[static_cast<std::size_t>(section)][recomputed ? 1 : 0];
      row.memory = section_memory(list, kept_tensors(plan, list, mode, static_cast<int>(stage)));
      row.weights = section_weights(plan, elements, section);
    }
  }
  return table;
}

WeightElements stage_weights(const SectionTable& table, const std::vector<ChunkRuns>& chunks) {
  WeightElements sum;
  for (const ChunkRuns& runs : chunks)
    for (const SectionRun& run : runs) {
      const WeightElements& one = table(run).weights;
      sum += {run.count * one.shared, run.count * one.experts};
    }
  return sum;
}

StagePeak stage_peak(const Plan& plan, const SectionTable& table, std::int64_t stage,
                     const std::vector<ChunkRuns>& chunks, const std::vector<SchedulePoint>& points) {
  const ChunkWalk walk(plan, table);
  std::vector<ChunkMemory> memory;
  for (const ChunkRuns& runs : chunks) memory.push_back(walk.walk(runs));
  const Bytes tokens = micro_batch_bytes(plan);
  MemoryMoment highest;
  for (const SchedulePoint& point : points) {
    const ChunkMemory& running = memory[static_cast<std::size_t>(point.chunk)];
    MemoryMoment moment = point.kind == ActionKind::forward ? running.forward : running.backward;
    moment.kept += tokens;
    moment.transient += constant_bytes(plan);
    for (std::size_t chunk = 0; chunk < memory.size(); ++chunk)
      moment.kept += point.alive[chunk] * (memory[chunk].kept + tokens);
    raise(highest, moment);
  }
  const WeightElements weights = stage_weights(table, chunks);
  return {state_memory(plan, weights), highest.kept, highest.transient,
          communication_buffers(plan, weights.total()) + held_messages(plan, plan.batch.micro_batch, stage)};
}

}  // namespace reckon
