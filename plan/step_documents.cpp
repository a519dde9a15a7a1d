#include "plan/step_documents.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "plan/choices.h"
#include "plan/placement_work.h"
#include "plan/rank_grid.h"
#include "plan/row_share.h"

namespace reckon {

namespace {

/// More documents to choose from than the rows hold, so that the packers that do not cut leave little padding.
constexpr double kChoice = 1.125;

/// Sums over placed rows; the worst ranks of rows add up, as rows follow each other.
struct RowSums {
  double pairs = 0, worst_pairs = 0, mean_pairs = 0;  // of full causal documents, as the placement sees them
  double visible = 0;                                 // with windows
  double key_blocks_mean = 0, key_blocks_max = 0;
  double moved_blocks = 0, gradient_blocks = 0, messages = 0, gradient_messages = 0;  // of the busiest rank
  double rows = 0;
  std::map<Placement, int> chosen;

  void add(const Plan& plan, const PackedRow& row, const PlacementCosts& costs) {
    const PlacedRow placed = place_row(plan, row, costs);
    const DocumentBorders& documents = placed.documents;
    const PlacementWork work = placement_work(documents, placed.placement);
    for (std::int64_t i = 0; i < documents.documents(); ++i) visible += causal_pairs(plan.model, documents.length(i));
    mean_pairs += work.total_pairs() / static_cast<double>(plan.parallel.ring);
    worst_pairs += *std::max_element(work.pairs.begin(), work.pairs.end());
    key_blocks_mean += work.key_blocks_mean();
    key_blocks_max += work.key_blocks_max();
    if (plan.parallel.ring > 1) add_messages(placed, work);
    ++chosen[placed.placement.kind];
    ++rows;
  }

  void add_messages(const PlacedRow& row, const PlacementWork& work) {
    std::size_t busiest = 0;
    const auto moved = [&](std::size_t rank) { return std::max(work.sent[rank], work.received[rank]); };
    for (std::size_t rank = 1; rank < work.sent.size(); ++rank)
      if (moved(rank) > moved(busiest)) busiest = rank;
    const RingTransfers transfers =
        ring_transfers(row.documents, row.placement, static_cast<std::int64_t>(busiest), row.mode);
    const auto block = static_cast<double>(work.rank_tokens);
    moved_blocks += static_cast<double>(std::max(transfers.sent(), transfers.received())) / block;
    gradient_blocks += static_cast<double>(moved(busiest)) / block;
    messages += static_cast<double>(transfers.messages_sent());
    gradient_messages += static_cast<double>(transfers.gradient_messages_sent());
  }
};

double pairs_of(const std::vector<PackedRow>& rows) {
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
  return total == 0 ? 1.0 : most / (total / static_cast<double>(groups.size() / size));
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

double useful_tokens(const Plan& plan, std::int64_t steps) {
  if (!plan.has_documents() || steps < 1)
    return static_cast<double>(plan.batch.global_batch * plan.batch.sequence_length);
  StepPacker packer(plan);
  std::int64_t tokens = 0;
  for (std::int64_t step = 0; step < steps; ++step)
    for (const std::vector<PackedRow>& group : packer.next())
      for (const PackedRow& row : group) tokens += row.tokens();
  return static_cast<double>(tokens) / static_cast<double>(steps);
}

DocumentWork planned_documents(const Plan& plan) {
  if (plan.has_documents()) return document_work(plan);
  DocumentWork work;
  work.attention = single_document_work(plan);
  work.packing.documents = plan.batch.global_batch;
  const Placement placement = planned_placement(plan);
  const std::int64_t tokens = plan.batch.sequence_length;
  const DocumentBorders row = document_borders(std::vector<std::int64_t>{tokens}, tokens);
  const PlacementWork placed = placement_work(row, place_tokens(row, plan.parallel.ring, placement));
  work.packing.placement = std::string(name_of(placement));
  work.packing.imbalance = placed.imbalance();
  work.packing.kv_blocks_mean = placed.key_blocks_mean();
  work.packing.kv_blocks_max = placed.key_blocks_max();
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

DocumentWork document_work(const Plan& plan, std::int64_t rows) {
  StepPacker packer(plan);
  std::vector<PackedRow> all;
  double replicas = 0, micro_batches = 0, steps = 0;
  for (; static_cast<std::int64_t>(all.size()) < std::max<std::int64_t>(rows, 1); ++steps) {
    std::vector<double> pairs;
    for (std::vector<PackedRow>& group : packer.next()) {
      pairs.push_back(pairs_of(group));
      std::move(group.begin(), group.end(), std::back_inserter(all));
    }
    replicas += imbalance_of(pairs, static_cast<std::size_t>(plan.micro_batches()));
    micro_batches += imbalance_of(pairs, 1);
  }
  const PlacementCosts costs = placement_costs(plan);
  RowSums sums;
  const std::size_t step =
      std::max<std::size_t>(1, all.size() / static_cast<std::size_t>(std::max<std::int64_t>(rows, 1)));
  for (std::size_t row = 0; row < all.size(); row += step) sums.add(plan, all[row], costs);

  DocumentWork work;
  const PackingReport report = packing_report(all, plan.batch.sequence_length);
  const auto most_chosen = std::max_element(sums.chosen.begin(), sums.chosen.end(),
                                            [](const auto& a, const auto& b) { return a.second < b.second; });
  work.attention.pairs_per_row = sums.visible / sums.rows;
  work.attention.imbalance = sums.mean_pairs > 0 ? sums.worst_pairs / sums.mean_pairs : 1.0;
  work.attention.key_blocks = sums.moved_blocks / sums.rows;
  work.attention.gradient_blocks = sums.gradient_blocks / sums.rows;
  work.attention.messages = sums.messages / sums.rows;
  work.attention.gradient_messages = sums.gradient_messages / sums.rows;
  work.packing.documents = static_cast<std::int64_t>(static_cast<double>(report.pieces) / steps + 0.5);
  work.packing.real_token_share = report.real_token_share;
  work.packing.sum_of_squares_share = report.sum_of_squares_share;
  work.packing.placement = std::string(name_of(most_chosen->first));
  work.packing.imbalance = work.attention.imbalance;
  work.packing.kv_blocks_mean = sums.key_blocks_mean / sums.rows;
  work.packing.kv_blocks_max = sums.key_blocks_max / sums.rows;
  work.replica_imbalance = replicas / steps;
  work.micro_batch_imbalance = micro_batches / steps;
  return work;
}

}  // namespace reckon
