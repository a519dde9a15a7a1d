#include "sim/step_breakdown.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/streams.h"

namespace reckon {
namespace {

/// Integer picoseconds by component.
class Ledger {
 public:
  void busy(const std::string& component, Picoseconds time) { entries_[component].busy += time.value; }
  void exposed(const std::string& component, Picoseconds time) {
    if (time.value != 0) entries_[component].exposed += time.value;
  }

  std::vector<TimeComponent> components() const {
    std::vector<TimeComponent> result;
    for (const auto& [component, entry] : entries_)
      result.push_back(
          {component, to_seconds(Picoseconds(entry.busy)), to_seconds(Picoseconds(entry.exposed)), Seconds(0.0)});
    return result;
  }

 private:
  struct Entry {
    std::int64_t busy = 0, exposed = 0;
  };
  std::map<std::string, Entry> entries_;
};

class RankBreakdown {
 public:
  RankBreakdown(const SpanTable& table, const Labels& labels, int rank, const Perturbation& perturbation)
      : table_(table), labels_(labels), rank_(rank), perturbation_(perturbation) {}

  std::vector<TimeComponent> run(Picoseconds end) {
    for (int stream = kCompute + 1; stream < kStreams; ++stream)
      for (const Span& span : table_.spans(rank_, stream)) ledger_.busy(name(span), span.end - span.start);
    Picoseconds now{0};
    for (const Span& span : table_.spans(rank_, kCompute)) {
      if (span.start > now) explain_gap(now, span);
      add_work(span);
      now = span.end;
    }
    if (end > now) explain_tail(now, end);
    return ledger_.components();
  }

 private:
  const std::string& name(const Span& span) const { return labels_.name(table_.task(span).label); }

  Picoseconds alone(const Span& work) const {
    const auto duration = static_cast<double>(table_.task(work).duration.value);
    return std::min(work.end - work.start,
                    Picoseconds(std::llround(duration * perturbation_.factor(rank_, work.stream, work.task))));
  }

  void add_work(const Span& work) {
    const Picoseconds nominal = alone(work);
    ledger_.busy(name(work), work.end - work.start);
    ledger_.exposed(name(work), nominal);
    const Picoseconds slowed = work.end - work.start - nominal;
    if (slowed.value > 0) charge_overlapping(work, slowed);
  }

  /// Divides `slowed` among the transfers that moved while `work` ran.
  void charge_overlapping(const Span& work, Picoseconds slowed) {
    std::vector<std::pair<const Span*, std::int64_t>> beside;
    std::int64_t total = 0;
    for (int stream = kCompute + 1; stream < kStreams; ++stream) {
      const auto& spans = table_.spans(rank_, stream);
      const auto ends_before = [&](const Span& span, Picoseconds time) { return span.end <= time; };
      for (auto span = std::lower_bound(spans.begin(), spans.end(), work.start, ends_before);
           span != spans.end() && span->start < work.end; ++span) {
        if (!table_.communicator(*span).disturbs) continue;
        const auto both = std::min(span->end, work.end) - std::max(span->start, work.start);
        beside.emplace_back(&*span, both.value);
        total += both.value;
      }
    }
    Picoseconds left = slowed;
    for (std::size_t i = 0; i < beside.size(); ++i) {
      const double share = static_cast<double>(beside[i].second) / static_cast<double>(total);
      const Picoseconds part =
          i + 1 == beside.size() ? left : Picoseconds(std::llround(static_cast<double>(slowed.value) * share));
      ledger_.exposed(name(*beside[i].first), part);
      left -= part;
    }
    if (beside.empty()) ledger_.exposed(name(work), left);  // rounding of a picosecond or two
  }

  /// The gap from `begin` to the start of `after`, walked backwards along what `after` waited for.
  void explain_gap(Picoseconds begin, const Span& after) {
    walk_back(begin, after.start, table_.before_arrival(after));
  }

  void walk_back(Picoseconds begin, Picoseconds now, std::optional<Span> cause) {
    while (now > begin && cause && cause->end == now) {
      if (cause->rank != rank_) {  // a message on its way here, and for as long this rank's communication too
        ledger_.busy(name(*cause), now - std::min(now, std::max(begin, cause->start)));
        take(name(*cause), begin, cause->start, now);
        break;
      }
      if (cause->stream == kCompute) break;
      take(name(*cause), begin, cause->start, now);
      take(joins_stages(*cause) ? "bubble" : "waiting", begin, cause->arrival, now);
      cause = table_.before_arrival(*cause);
    }
    if (now > begin) ledger_.exposed("bubble", now - begin);
  }

  /// The rest of the step after the last work: own communication, or others that are still at it.
  void explain_tail(Picoseconds begin, Picoseconds end) {
    std::optional<Span> last;
    for (int stream = kCompute + 1; stream < kStreams; ++stream) {
      const auto& spans = table_.spans(rank_, stream);
      if (!spans.empty() && (!last || spans.back().end > last->end)) last = spans.back();
    }
    const Picoseconds done = last ? std::max(begin, last->end) : begin;
    if (end > done) ledger_.exposed("waiting", end - done);
    if (done > begin) walk_back(begin, done, last);
  }

  /// Waiting for other stages is part of the pipeline's bubble.
  bool joins_stages(const Span& transfer) const { return transfer.stream == kWorld; }

  /// Gives [max(begin, from), now] to a component and moves `now` there.
  void take(const std::string& component, Picoseconds begin, Picoseconds from, Picoseconds& now) {
    const Picoseconds start = std::min(now, std::max(begin, from));
    ledger_.exposed(component, now - start);
    now = start;
  }

  const SpanTable& table_;
  const Labels& labels_;
  int rank_;
  const Perturbation& perturbation_;
  Ledger ledger_;
};

}  // namespace

std::vector<TimeComponent> break_down(const SpanTable& table, const Labels& labels, int rank, Picoseconds end,
                                      const Perturbation& perturbation) {
  return RankBreakdown(table, labels, rank, perturbation).run(end);
}

std::vector<CriticalPiece> critical_path(const SpanTable& table, const Labels& labels, int ranks) {
  std::optional<Span> current;
  for (int rank = 0; rank < ranks; ++rank)
    for (int stream = 0; stream < kStreams; ++stream) {
      const auto& spans = table.spans(rank, stream);
      if (!spans.empty() && (!current || spans.back().end > current->end)) current = spans.back();
    }
  std::vector<CriticalPiece> path;
  while (current) {
    if (current->end > current->start)
      path.push_back({labels.name(table.task(*current).label), current->rank, current->start, current->end});
    if (current->start > current->arrival) current = table.last_arrival(*current);
    if (current) current = table.before_arrival(*current);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<TimeComponent> sum_by_component(const std::vector<CriticalPiece>& path) {
  std::map<std::string, Picoseconds> sums;
  for (const CriticalPiece& piece : path) sums[piece.component] += piece.end - piece.start;
  std::vector<TimeComponent> rows;
  for (const auto& [component, time] : sums)
    rows.push_back({component, to_seconds(time), to_seconds(time), Seconds(0.0)});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TimeComponent& a, const TimeComponent& b) { return a.seconds > b.seconds; });
  return rows;
}

}  // namespace reckon
