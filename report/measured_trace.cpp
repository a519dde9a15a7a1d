#include "report/measured_trace.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace reckon {
namespace {

using nlohmann::json;

bool is_communication(const std::string& component) {
  return !component.starts_with("forward.") && !component.starts_with("backward.") &&
         !component.starts_with("recompute.") && component != "optimizer" && component != "other";
}

class Writer {
 public:
  explicit Writer(const std::vector<RankTrace>& traces) : traces_(traces) {
    for (const RankTrace& trace : traces)
      if (!trace.spans.empty()) zero_ = std::min(zero_, trace.spans.front().start);
  }

  std::string write() {
    for (const RankTrace& trace : traces_) {
      name_rank(trace);
      for (const TraceSpan& span : trace.spans) add_span(trace, span);
    }
    add_arrows();
    return json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events_)}}.dump() + "\n";
  }

 private:
  /// The format counts microseconds.
  double microseconds(std::int64_t time) const { return static_cast<double>(time - zero_) * 1e-3; }

  void name_rank(const RankTrace& trace) {
    const std::string name = "rank " + std::to_string(trace.rank) + " (stage " + std::to_string(trace.stage) + ")";
    events_.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", trace.rank}, {"args", {{"name", name}}}});
    events_.push_back(
        {{"name", "process_sort_index"}, {"ph", "M"}, {"pid", trace.rank}, {"args", {{"sort_index", trace.rank}}}});
  }

  void add_span(const RankTrace& trace, const TraceSpan& span) {
    if (span.end <= span.start) return;
    const std::string& name = trace.components.at(span.component);
    events_.push_back({{"name", name},
                       {"cat", is_communication(name) ? "communication" : "compute"},
                       {"ph", "X"},
                       {"pid", trace.rank},
                       {"tid", 0},
                       {"ts", microseconds(span.start)},
                       {"dur", static_cast<double>(span.end - span.start) * 1e-3}});
  }

  void add_arrows() {
    std::map<std::tuple<std::int64_t, std::int64_t, bool>, std::deque<std::int64_t>> sent;  // from, to, direction
    for (const RankTrace& trace : traces_)
      for (const TraceMessage& message : trace.messages)
        if (message.sends) sent[{trace.rank, message.peer, message.forward}].push_back(message.time);
    for (const RankTrace& trace : traces_)
      for (const TraceMessage& message : trace.messages) {
        if (message.sends) continue;
        auto& waiting = sent[{message.peer, trace.rank, message.forward}];
        if (waiting.empty()) continue;  // its sender was not traced
        add_arrow(message.peer, waiting.front(), trace.rank, message.time, message.forward ? "output" : "gradient");
        waiting.pop_front();
      }
  }

  void add_arrow(std::int64_t from, std::int64_t sent, std::int64_t to, std::int64_t arrived, const char* name) {
    json start{{"name", name}, {"cat", "pipeline"},       {"ph", "s"}, {"id", next_arrow_}, {"pid", from},
               {"tid", 0},     {"ts", microseconds(sent)}};
    json end = start;
    end["ph"] = "f";
    end["bp"] = "e";  // binds to the slice around it
    end["pid"] = to;
    end["ts"] = microseconds(arrived);
    events_.push_back(std::move(start));
    events_.push_back(std::move(end));
    ++next_arrow_;
  }

  const std::vector<RankTrace>& traces_;
  std::int64_t zero_ = std::numeric_limits<std::int64_t>::max();
  json events_ = json::array();
  std::int64_t next_arrow_ = 1;
};

}  // namespace

std::string measured_trace_json(const std::vector<RankTrace>& traces) {
  return Writer(traces).write();
}

}  // namespace reckon
