#include "sim/write_trace.h"

#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "plan/errors.h"
#include "sim/streams.h"

namespace reckon {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// The format counts microseconds; six decimals are picoseconds.
std::string microseconds(Picoseconds time) {
  return fmt::format("{}.{:06}", time.value / 1'000'000, time.value % 1'000'000);
}

class TraceWriter {
 public:
  TraceWriter(const Simulation& simulation, std::ostream& out)
      : simulation_(simulation), step_(*simulation.step), out_(out) {}

  void write() {
    out_ << R"({"displayTimeUnit":"ms","traceEvents":[)";
    for (const int rank : step_.kept) {
      name_rank(rank);
      for (int stream = 0; stream < kStreams; ++stream) {
        const auto& spans = step_.spans->spans(rank, stream);
        if (spans.empty()) continue;
        metadata("thread_name", rank, stream, std::string(name_of(static_cast<Stream>(stream))));
        for (const Span& span : spans) write_span(span);
      }
      write_arrows(rank);
    }
    for (const MemoryTimeline& timeline : simulation_.memory) write_memory(timeline);
    out_ << "\n]}\n";
    out_.flush();
    if (!out_) throw RunError("the trace could not be written: the output refuses more bytes");
  }

 private:
  void event(const std::string& text) {
    out_ << (first_ ? "\n" : ",\n") << text;
    first_ = false;
  }

  std::int64_t plan_rank(int rank) const { return step_.cluster.ranks[static_cast<std::size_t>(rank)]; }
  int stage_of(int rank) const { return step_.cluster.stages[static_cast<std::size_t>(rank)]; }

  void metadata(const char* kind, int rank, int stream, const std::string& name) {
    event(fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", kind, plan_rank(rank),
                      stream, quoted(name)));
  }

  void name_rank(int rank) {
    const bool folded = step_.cluster.ranks.size() < static_cast<std::size_t>(simulation_.profile.world_size);
    metadata("process_name", rank, 0,
             fmt::format("rank {} (stage {}{})", plan_rank(rank), stage_of(rank),
                         folded ? ", stands for its whole stage" : ""));
    event(fmt::format(R"({{"name":"process_sort_index","ph":"M","pid":{},"tid":0,"args":{{"sort_index":{}}}}})",
                      plan_rank(rank), plan_rank(rank)));
  }

  const TaskNote& note_of(const Span& span) const {
    const StageGraph& stage = step_.graph.stages[static_cast<std::size_t>(stage_of(span.rank))];
    return stage.notes[static_cast<std::size_t>(span.stream)][static_cast<std::size_t>(span.task)];
  }

  void slice(const Span& span, std::string_view name, Picoseconds start, Picoseconds end) {
    const TaskNote& note = note_of(span);
    std::string arguments;
    if (note.micro_batch >= 0)
      arguments = fmt::format(R"(,"args":{{"micro_batch":{},"chunk":{},"layer":{}}})", note.micro_batch, note.chunk,
                              quoted(layer_name(note.layer)));
    event(fmt::format(R"({{"name":{},"cat":"{}","ph":"X","pid":{},"tid":{},"ts":{},"dur":{}{}}})", quoted(name),
                      span.stream == kCompute ? "compute" : "communication", plan_rank(span.rank), span.stream,
                      microseconds(start), microseconds(end - start), arguments));
  }

  static std::string layer_name(std::int64_t layer) {
    if (layer == kEmbeddingLayer) return "embedding";
    if (layer == kHeadLayer) return "head";
    return layer == kNoLayer ? "" : std::to_string(layer);
  }

  void write_span(const Span& span) {
    if (span.start > span.arrival) slice(span, "waiting", span.arrival, span.start);
    if (span.end > span.start)
      slice(span, step_.graph.labels.name(step_.spans->task(span).label), span.start, span.end);
  }

  /// Arrows from the sender's slice to the first task that waits for the message.
  void write_arrows(int rank) {
    const Program& program =
        step_.cluster.scenario
            .programs[static_cast<std::size_t>(step_.cluster.scenario.program_of_rank[static_cast<std::size_t>(rank)])];
    for (const Span& span : step_.spans->spans(rank, kCompute)) {
      const Task& task = program.streams[kCompute][static_cast<std::size_t>(span.task)];
      for (std::uint32_t i = 0; i < task.waits; ++i) {
        const Wait& wait = program.waits[task.first_wait + i];
        if (wait.counter < kStreams) continue;
        if (const auto message = step_.spans->message(rank, wait.counter - kStreams, wait.count)) arrow(*message, span);
      }
    }
  }

  void arrow(const Span& message, const Span& receiver) {
    if (message.end == message.start) return;  // nothing to start from: such slices are not drawn
    const std::int64_t id = next_arrow_++;
    event(fmt::format(R"({{"name":"message","cat":"pipeline","ph":"s","id":{},"pid":{},"tid":{},"ts":{}}})", id,
                      plan_rank(message.rank), message.stream, microseconds(message.start)));
    event(fmt::format(R"({{"name":"message","cat":"pipeline","ph":"f","bp":"e","id":{},"pid":{},"tid":{},"ts":{}}})",
                      id, plan_rank(receiver.rank), receiver.stream, microseconds(receiver.start)));
  }

  /// One counter event for each instant at which something changes.
  void write_memory(const MemoryTimeline& timeline) {
    BytesByCategory now = timeline.always;
    counter(timeline, Picoseconds(0), now);
    for (std::size_t i = 0; i < timeline.changes.size(); ++i) {
      const MemoryChange& change = timeline.changes[i];
      apply(change, now);
      if (i + 1 == timeline.changes.size() || timeline.changes[i + 1].time > change.time)
        counter(timeline, change.time, now);
    }
  }

  void counter(const MemoryTimeline& timeline, Picoseconds time, const BytesByCategory& bytes) {
    std::string values;
    for (std::size_t i = 0; i < kMemoryCategories; ++i)
      values += fmt::format(R"({}"{}":{})", i == 0 ? "" : ",", name_of(static_cast<MemoryCategory>(i)), bytes[i]);
    event(fmt::format(R"({{"name":"memory, bytes","ph":"C","pid":{},"tid":0,"ts":{},"args":{{{}}}}})", timeline.rank,
                      microseconds(time), values));
  }

  const Simulation& simulation_;
  const PlayedStep& step_;
  std::ostream& out_;
  bool first_ = true;
  std::int64_t next_arrow_ = 1;
};

}  // namespace

void write_trace(const Simulation& simulation, std::ostream& out) {
  TraceWriter(simulation, out).write();
}

}  // namespace reckon
