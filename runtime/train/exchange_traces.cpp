#include "runtime/train/exchange_traces.h"

#include <sstream>
#include <string>

#include "runtime/train/exchange_text.h"

namespace reckon {
namespace {

// Component names hold no spaces, so traces travel as words.
std::string encode(const RankTrace& trace, std::int64_t offset) {
  std::ostringstream out;
  out << trace.rank << ' ' << trace.stage << ' ' << trace.components.size() << ' ' << trace.spans.size() << ' '
      << trace.messages.size() << '\n';
  for (const std::string& component : trace.components) out << component << '\n';
  for (const TraceSpan& span : trace.spans)
    out << span.component << ' ' << span.start - offset << ' ' << span.end - offset << '\n';
  for (const TraceMessage& message : trace.messages)
    out << message.peer << ' ' << message.forward << ' ' << message.sends << ' ' << message.time - offset << '\n';
  return out.str();
}

RankTrace decode(const std::string& text) {
  std::istringstream in(text);
  RankTrace trace;
  std::size_t components = 0, spans = 0, messages = 0;
  in >> trace.rank >> trace.stage >> components >> spans >> messages;
  trace.components.resize(components);
  trace.spans.resize(spans);
  trace.messages.resize(messages);
  for (std::string& component : trace.components) in >> component;
  for (TraceSpan& span : trace.spans) in >> span.component >> span.start >> span.end;
  for (TraceMessage& message : trace.messages) in >> message.peer >> message.forward >> message.sends >> message.time;
  return trace;
}

}  // namespace

std::vector<RankTrace> exchange_traces(Communicator& world, const RankTrace& own, std::int64_t clock_offset) {
  std::vector<RankTrace> traces;
  for (const std::string& text : exchange_text(world, encode(own, clock_offset))) traces.push_back(decode(text));
  return traces;
}

}  // namespace reckon
