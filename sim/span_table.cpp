#include "sim/span_table.h"

#include <algorithm>
#include <cstddef>

namespace reckon {

SpanTable::SpanTable(const Scenario& scenario, const std::vector<int>& ranks)
    : scenario_(scenario),
      kept_(static_cast<std::size_t>(scenario.ranks()) * kStreams, ranks.empty()),
      rows_(kept_.size()),
      senders_(static_cast<std::size_t>(scenario.ranks())) {
  for (const int rank : ranks)
    for (int stream = 0; stream < kStreams; ++stream) kept_[row(rank, stream)] = true;
  for (auto& inboxes : senders_) inboxes.fill({-1, 0});
  const std::vector<bool> asked = kept_;
  for (const Communicator& communicator : scenario.communicators) {
    if (communicator.deliver_rank < 0) continue;
    const Communicator::Member sender = communicator.members.front();
    senders_[static_cast<std::size_t>(communicator.deliver_rank)]
            [static_cast<std::size_t>(communicator.deliver_inbox)] = sender;
    if (asked[row(communicator.deliver_rank, sender.stream)]) kept_[row(sender.rank, sender.stream)] = true;
  }
}

void SpanTable::on_span(const Span& span, const Task&) {
  const std::size_t place = row(span.rank, span.stream);
  if (kept_[place]) rows_[place].push_back(span);
}

const Task& SpanTable::task(const Span& span) const {
  const auto program = static_cast<std::size_t>(scenario_.program_of_rank[static_cast<std::size_t>(span.rank)]);
  return scenario_.programs[program]
      .streams[static_cast<std::size_t>(span.stream)][static_cast<std::size_t>(span.task)];
}

const Communicator& SpanTable::communicator(const Span& transfer) const {
  const auto port = static_cast<std::size_t>(transfer.rank * scenario_.ports + task(transfer).port);
  return scenario_.communicators[static_cast<std::size_t>(scenario_.communicator_of_port[port])];
}

std::optional<Span> SpanTable::message(int rank, int inbox, std::int32_t count) const {
  const auto sender = senders_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(inbox)];
  if (sender.rank < 0) return std::nullopt;
  const auto& sent = spans(sender.rank, sender.stream);
  const auto index = static_cast<std::size_t>(count - 1);
  if (index >= sent.size()) return std::nullopt;
  return sent[index];
}

std::optional<Span> SpanTable::before_arrival(const Span& span) const {
  std::optional<Span> latest;
  const auto consider = [&](const std::optional<Span>& candidate) {
    if (candidate && (!latest || candidate->end > latest->end)) latest = candidate;
  };
  // The stream's own predecessor first: of equal ends it is the simplest explanation.
  if (span.task > 0) consider(spans(span.rank, span.stream)[static_cast<std::size_t>(span.task - 1)]);
  const auto program = static_cast<std::size_t>(scenario_.program_of_rank[static_cast<std::size_t>(span.rank)]);
  const Task& waiting = task(span);
  for (std::uint32_t i = 0; i < waiting.waits; ++i) {
    const Wait& wait = scenario_.programs[program].waits[waiting.first_wait + i];
    if (wait.counter >= kStreams) consider(message(span.rank, wait.counter - kStreams, wait.count));
    else consider(spans(span.rank, wait.counter)[static_cast<std::size_t>(wait.count - 1)]);
  }
  return latest;
}

std::optional<Span> SpanTable::last_arrival(const Span& transfer) const {
  std::optional<Span> last;
  for (const auto& member : communicator(transfer).members) {
    const auto& list = spans(member.rank, member.stream);  // sorted by start; one transfer at a time
    const auto later = [](const Span& a, const Span& b) { return a.end < b.end; };
    const auto span = std::lower_bound(list.begin(), list.end(), transfer, later);
    for (auto same = span; same != list.end() && same->end == transfer.end; ++same)
      if (same->start == transfer.start && (!last || same->arrival > last->arrival)) last = *same;
  }
  return last;
}

}  // namespace reckon
