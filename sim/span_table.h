// Spans of chosen ranks, and what each had to wait for. Everything that explains a simulated step reads this.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/engine.h"
#include "sim/program.h"

namespace reckon {

class SpanTable : public SpanSink {
 public:
  /// Keeps the spans of `ranks` and of the messages that they receive; all ranks if empty.
  explicit SpanTable(const Scenario& scenario, const std::vector<int>& ranks = {});

  void on_span(const Span& span, const Task& task) override;

  /// In order of execution: index = task. Empty for ranks that are not kept.
  const std::vector<Span>& spans(int rank, int stream) const { return rows_[row(rank, stream)]; }
  const Task& task(const Span& span) const;
  const Communicator& communicator(const Span& transfer) const;

  /// The span whose end let `span` arrive at the head of its stream: a task before it in its stream, one that it waits
  /// for, or the message that it waits for. Nothing if it arrived at time 0 with nothing before it.
  std::optional<Span> before_arrival(const Span& span) const;
  /// The member of a transfer that arrived last; nothing if that rank is not kept.
  std::optional<Span> last_arrival(const Span& transfer) const;
  /// The message that made `count` in an inbox of `rank`; nothing if its sender is not kept.
  std::optional<Span> message(int rank, int inbox, std::int32_t count) const;

 private:
  std::size_t row(int rank, int stream) const {
    return static_cast<std::size_t>(rank) * kStreams + static_cast<std::size_t>(stream);
  }
  const Scenario& scenario_;
  std::vector<bool> kept_;                                           // [ranks, streams]
  std::vector<std::vector<Span>> rows_;                              // [ranks, streams]
  std::vector<std::array<Communicator::Member, kInboxes>> senders_;  // who fills a rank's inbox; rank -1: nobody
};

}  // namespace reckon
