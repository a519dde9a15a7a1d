#include "plan/step_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include "plan/choices.h"
#include "plan/errors.h"
#include "plan/placement_work.h"
#include "plan/rank_grid.h"
#include "plan/row_share.h"

namespace reckon {

namespace {

/// More documents to choose from than the rows hold, so that the packers that do not cut leave little padding.
constexpr double kChoice = 1.125;
constexpr std::size_t kMostDocuments = std::size_t{1} << 22;  // of a step: all of them are packed at once

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Sums over placed rows; the worst ranks of rows add up, as rows follow each other.
class RowSums {
 public:
  /// What ranks send is summed by replica.
  RowSums(const Plan& plan, std::int64_t replicas)
      : plan_(plan),
        costs_(placement_costs(plan)),
        loads_(static_cast<std::size_t>(plan.parallel.ring > 1 ? replicas * plan.parallel.ring : 0)) {}

  void add(const PackedRow& row, std::int64_t replica) {
    const PlacedRow placed = place_row(plan_, row, costs_);
    const DocumentBorders& documents = placed.documents;
    const PlacementWork work = placement_work(documents, placed.placement);
    for (std::int64_t i = 0; i < documents.documents(); ++i) visible_ += causal_pairs(plan_.model, documents.length(i));
    mean_pairs_ += work.total_pairs() / static_cast<double>(plan_.parallel.ring);
    worst_pairs_ += *std::max_element(work.pairs.begin(), work.pairs.end());
    key_blocks_mean_ += work.key_blocks_mean();
    key_blocks_max_ += work.key_blocks_max();
    if (plan_.parallel.ring > 1) add_messages(placed, work, replica);
    ++chosen_[placed.placement.kind];
    ++rows_, ++rows_of_step_;
  }
  void end_step() {
    if (rows_of_step_ > 0) pairs_by_step_.push_back(visible_ / rows_of_step_);
    visible_ = rows_of_step_ = 0;
  }

  AttentionWork attention() {
    AttentionWork work;
    work.pairs_per_row = median(pairs_by_step_);
    work.imbalance = mean_pairs_ > 0 ? worst_pairs_ / mean_pairs_ : 1.0;
    work.key_blocks = moved_blocks_ / rows_;
    work.gradient_blocks = gradient_blocks_ / rows_;
    work.messages = messages_ / rows_;
    work.gradient_messages = gradient_messages_ / rows_;
    return work;
  }
  void describe(PackingSummary& packing) const {
    const auto most_chosen = std::max_element(chosen_.begin(), chosen_.end(),
                                              [](const auto& a, const auto& b) { return a.second < b.second; });
    packing.placement = std::string(name_of(most_chosen->first));
    packing.kv_blocks_mean = key_blocks_mean_ / rows_;
    packing.kv_blocks_max = key_blocks_max_ / rows_;
  }
  std::vector<RingLoad> take_loads() { return std::move(loads_); }

 private:
  void add_messages(const PlacedRow& row, const PlacementWork& work, std::int64_t replica) {
    const std::vector<RingSends> sends = ring_sends(row.documents, row.placement, row.mode);
    std::size_t busiest = 0;
    const auto moved = [&](std::size_t rank) { return std::max(work.sent[rank], work.received[rank]); };
    for (std::size_t rank = 0; rank < sends.size(); ++rank) {
      RingLoad& load = loads_[static_cast<std::size_t>(replica) * sends.size() + rank];
      ++load.rows;
      load.sent += ring_messages(plan_, sends[rank]);
      if (moved(rank) > moved(busiest)) busiest = rank;
    }
    const auto block = static_cast<double>(work.rank_tokens);
    const std::int64_t tokens = row.mode == TransferMode::direct ? moved(busiest) : sends[busiest].tokens;
    moved_blocks_ += static_cast<double>(tokens) / block;
    gradient_blocks_ += static_cast<double>(moved(busiest)) / block;
    messages_ += static_cast<double>(sends[busiest].messages);
    gradient_messages_ += static_cast<double>(sends[busiest].gradient_messages);
  }

  const Plan& plan_;
  PlacementCosts costs_;
  double mean_pairs_ = 0, worst_pairs_ = 0;  // of full causal documents, as the placement sees them
  double visible_ = 0, rows_of_step_ = 0;    // of the step that is under way, with windows
  std::vector<double> pairs_by_step_;        // of its mean row
  double key_blocks_mean_ = 0, key_blocks_max_ = 0;
  double moved_blocks_ = 0, gradient_blocks_ = 0, messages_ = 0, gradient_messages_ = 0;  // of the busiest rank
  double rows_ = 0;
  std::vector<RingLoad> loads_;  // by replica, then rank
  std::map<Placement, int> chosen_;
};

/// Of the documents; of whole rows, which are all alike, one a row.
double pairs_of(const std::vector<PackedRow>& rows, AttentionScope scope) {
  if (scope == AttentionScope::whole_row) return static_cast<double>(rows.size());
  return std::accumulate(rows.begin(), rows.end(), 0.0,
                         [](double sum, const PackedRow& row) { return sum + row.pairs(); });
}

/// Heaviest of the sums over runs of `size` groups / mean.
double imbalance_of(const std::vector<double>& groups, std::size_t size) {
  double most = 0, total = 0;
  for (std::size_t i = 0; i < groups.size(); i += size) {
    const double sum = std::accumulate(groups.begin() + static_cast<std::ptrdiff_t>(i),
                                       groups.begin() + static_cast<std::ptrdiff_t>(i + size), 0.0);
    most = std::max(most, sum);
    total += sum;
  }
  const std::size_t sums = groups.size() / size;
  return total == 0 ? 1.0 : most / (total / static_cast<double>(sums));
}

}  // namespace

StepPacker::StepPacker(const Plan& plan)
    : documents_(plan.documents),
      row_tokens_(plan.batch.sequence_length),
      rows_(plan.batch.global_batch),
      replicas_(plan.parallel.data),
      micro_batches_(plan.micro_batches()),
      source_(plan.documents.source, plan.batch.sequence_length, plan.train.seed) {}

std::vector<std::vector<PackedRow>> StepPacker::next() {
  const bool padded = documents_.rows == Rows::padded;
  const bool chooses = !padded && documents_.packer != Packer::concatenate;
  const double wanted = static_cast<double>(rows_ * row_tokens_) * (chooses ? kChoice : 1.0);
  auto held = std::accumulate(waiting_.begin(), waiting_.end(), 0.0,
                              [](double sum, const Piece& piece) { return sum + static_cast<double>(piece.tokens); });
  const auto enough = [&] { return padded ? static_cast<std::int64_t>(waiting_.size()) >= rows_ : held >= wanted; };
  while (!enough()) {
    if (waiting_.size() >= kMostDocuments)
      throw RuleError(
          {{fmt::format("a step of {} rows x {} tokens would hold more than {} documents of {}; fewer or shorter "
                        "rows are needed",
                        rows_, row_tokens_, kMostDocuments, documents_.source),
            {},
            0,
            0,
            "batch.global_batch"}});
    const std::int64_t length = source_.lengths(next_document_, 1).front();
    waiting_.push_back({static_cast<std::int64_t>(next_document_++), 0, length});
    held += static_cast<double>(length);
  }
  PackedStep step = pack_step(waiting_, row_tokens_, rows_, documents_);
  waiting_ = std::move(step.left);
  std::vector<std::vector<PackedRow>> dealt;
  for (std::vector<PackedRow>& replica : deal_rows(std::move(step.rows), replicas_))
    for (std::vector<PackedRow>& micro_batch : deal_rows(std::move(replica), micro_batches_))
      dealt.push_back(std::move(micro_batch));
  return dealt;
}

PlacementCosts placement_costs(const Plan& plan) {
  PlacementCosts costs;
  const auto peak = plan.hardware.device.peak.find(plan.precision.compute);
  const GroupLayout layout = RankGrid(plan.parallel).layout(Group::ring, std::max(1, plan.hardware.devices_per_node));
  const LinkSpec& link = layout.nodes > 1 ? plan.hardware.inter_node : plan.hardware.intra_node;
  if (peak == plan.hardware.device.peak.end() || peak->second.value <= 0 || link.bandwidth.value <= 0) return costs;
  const ModelSpec& model = plan.model;
  const std::int64_t split = plan.parallel.tensor * plan.parallel.ulysses;
  const std::int64_t value_dim = model.is_mla() ? model.mla.v_head_dim : model.head_dim;
  const auto widths = static_cast<double>(model.head_dim + value_dim);
  const double heads = static_cast<double>(model.heads) / static_cast<double>(split);
  const double kv_heads = std::max(1.0, static_cast<double>(model.kv_heads) / static_cast<double>(split));
  const double bytes = payload_bits(tensor_format(plan)) / 8.0;
  const double factor = plan.hardware.time.attention_backward.flops_factor;      // of useful FLOPs at peak
  costs.pair = 3.5 * 2 * widths * heads * factor / peak->second.value;           // backward is 2.5 times forward
  costs.key_token = (2 * bytes + 4) * widths * kv_heads / link.bandwidth.value;  // twice there, fp32 gradients back
  return costs;
}

PricedSteps priced_steps(const Plan& plan) {
  const std::int64_t steps = std::max<std::int64_t>(1, plan.train.steps);
  PricedSteps priced;
  priced.first = std::min(std::max<std::int64_t>(0, plan.train.warmup), steps - 1);
  const std::int64_t timed = steps - priced.first,
                     most = kPricedRows / std::max<std::int64_t>(1, plan.batch.global_batch);
  priced.count = std::clamp<std::int64_t>(most, 1, timed);
  priced.is_sample = priced.count < timed;
  return priced;
}

DocumentWork planned_documents(const Plan& plan) {
  if (plan.has_documents()) return document_work(plan);
  DocumentWork work;
  work.attention = single_document_work(plan);
  work.packing.documents = plan.batch.global_batch;
  work.packing.mean_square_length = static_cast<double>(plan.batch.sequence_length);
  work.useful_tokens = static_cast<double>(plan.batch.global_batch * plan.batch.sequence_length);
  const Placement placement = planned_placement(plan);
  const std::int64_t tokens = plan.batch.sequence_length;
  const DocumentBorders row = document_borders(std::vector<std::int64_t>{tokens}, tokens);
  const TokenPlacement places = place_tokens(row, plan.parallel.ring, placement, placement_costs(plan));
  const PlacementWork placed = placement_work(row, places);
  work.packing.placement = std::string(name_of(placement));
  work.packing.imbalance = placed.imbalance();
  work.packing.kv_blocks_mean = placed.key_blocks_mean();
  work.packing.kv_blocks_max = placed.key_blocks_max();
  if (plan.parallel.ring > 1)
    for (const RingSends& sends : ring_sends(row, places, choose_transfer_mode(row, places)))
      work.ring.push_back({1, ring_messages(plan, sends)});
  return work;
}

AttentionWork planned_attention_work(const Plan& plan) {
  return !plan.has_documents() ? single_document_work(plan) : slowest_attention(document_work(plan));
}

AttentionWork slowest_attention(const DocumentWork& work) {
  AttentionWork slowest = work.attention;
  slowest.imbalance *= work.replica_imbalance;
  return slowest;
}

DocumentWork document_work(const Plan& plan) {
  const PricedSteps steps = priced_steps(plan);
  StepPacker packer(plan);
  for (std::int64_t step = 0; step < steps.first; ++step) packer.next();
  const std::int64_t pick = std::max<std::int64_t>(1, plan.batch.global_batch / kPricedRows);
  RowSums sums(plan, pick == 1 ? plan.parallel.data : 1);  // rows that are picked stand for all replicas alike
  std::vector<PackedRow> all;
  double replicas = 0, micro_batches = 0;
  for (std::int64_t step = 0; step < steps.count; ++step) {
    std::vector<double> pairs;
    std::int64_t row = 0;
    for (std::vector<PackedRow>& group : packer.next()) {
      const auto replica = static_cast<std::int64_t>(pairs.size()) / plan.micro_batches();
      pairs.push_back(pairs_of(group, plan.documents.attention));
      for (const PackedRow& one : group)
        if (row++ % pick == 0) sums.add(one, pick == 1 ? replica : 0);
      std::move(group.begin(), group.end(), std::back_inserter(all));
    }
    sums.end_step();
    replicas += imbalance_of(pairs, static_cast<std::size_t>(plan.micro_batches()));
    micro_batches += imbalance_of(pairs, 1);
  }
  const auto count = static_cast<double>(steps.count);
  const PackingReport report = packing_report(all, plan.batch.sequence_length);
  DocumentWork work;
  work.attention = sums.attention();
  work.ring = sums.take_loads();
  std::int64_t tokens = 0;
  for (const PackedRow& row : all) tokens += row.tokens();
  work.useful_tokens = static_cast<double>(tokens) / count;
  work.packing.documents = std::llround(static_cast<double>(report.pieces) / count);
  work.packing.documents_cut = std::llround(static_cast<double>(report.cut_documents) / count);
  work.packing.mean_square_length = report.mean_square_length;
  work.packing.row_imbalance = report.imbalance;
  work.packing.real_token_share = report.real_token_share;
  work.packing.sum_of_squares_share = report.sum_of_squares_share;
  work.packing.imbalance = work.attention.imbalance;
  sums.describe(work.packing);
  work.replica_imbalance = replicas / count;
  work.micro_batch_imbalance = micro_batches / count;
  return work;
}

}  // namespace reckon
