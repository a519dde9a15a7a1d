#include "sim/schedule_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sim/streams.h"

namespace reckon {
namespace {

constexpr double kLeft = 90, kRight = 20, kWidth = 1280, kPlotWidth = kWidth - kLeft - kRight;
constexpr double kTop = 64, kRowHeight = 24, kStripHeight = 7, kRowGap = 7;
constexpr double kMemoryHeight = 70, kMemoryGap = 14;

struct Style {
  std::string_view name, colour;
};
constexpr std::array<Style, 4> kWork = {
    {{"forward", "#5b8def"}, {"backward", "#2fa58a"}, {"optimizer", "#8a63c9"}, {"other", "#8c8c8c"}}};
constexpr std::array<Style, 4> kTransfers = {{{"layer collectives", "#e8963c"},
                                              {"parameters and gradients", "#d1495b"},
                                              {"messages", "#6c757d"},
                                              {"waiting", "#d9d9d9"}}};
constexpr std::array<std::string_view, kMemoryCategories> kMemoryColours = {"#37474f", "#d1495b", "#8a63c9",
                                                                            "#5b8def", "#e8963c", "#6c757d"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') result += "&lt;";
    else if (c == '>') result += "&gt;";
    else if (c == '&') result += "&amp;";
    else result += c;
  }
  return result;
}

std::string duration(Picoseconds time) {
  const double seconds = to_seconds(time).value;
  if (seconds >= 1.0) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

class Picture {
 public:
  explicit Picture(const Simulation& simulation) : simulation_(simulation), step_(*simulation.step) {}

  std::string draw() {
    const auto stages = static_cast<double>(step_.graph.stages.size());
    memory_top_ = kTop + stages * (kRowHeight + kStripHeight + kRowGap) + 44;
    const double height = memory_top_ + stages * (kMemoryHeight + kMemoryGap) + 30;
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" )"
        R"(font-family="sans-serif" font-size="11">)",
        kWidth, height);
    add(R"(<rect width="100%" height="100%" fill="white"/>)");
    heading();
    for (std::size_t stage = 0; stage < step_.graph.stages.size(); ++stage) row(static_cast<int>(stage));
    time_axis(memory_top_ - 36);
    memory();
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Arguments>(arguments)...);
    svg_ += '\n';
  }

  double x(Picoseconds time) const {
    const double share =
        step_.end.value > 0 ? static_cast<double>(time.value) / static_cast<double>(step_.end.value) : 0;
    return kLeft + kPlotWidth * share;
  }
  static double row_top(int stage) { return kTop + stage * (kRowHeight + kStripHeight + kRowGap); }

  void heading() {
    const StepProfile& profile = simulation_.profile;
    add(R"(<text x="{}" y="20" font-size="15" font-weight="bold">{}, {} ranks: {} a step, {:.1f} % bubble</text>)",
        kLeft, escaped(profile.plan.model.name), profile.world_size, duration(step_.end),
        100 * profile.step.bubble_fraction);
    double left = kLeft;
    for (const auto* styles : {&kWork, &kTransfers})
      for (const Style& style : *styles) {
        if (style.name == "other") continue;
        legend_entry(left, 34, style.name, style.colour);
      }
  }

  void legend_entry(double& left, double top, std::string_view name, std::string_view colour) {
    add(R"(<rect x="{:.1f}" y="{:.1f}" width="11" height="11" fill="{}"/><text x="{:.1f}" y="{:.1f}">{}</text>)", left,
        top, colour, left + 15, top + 9.5, name);
    left += 30 + 6.2 * static_cast<double>(name.size());
  }

  // ---- schedule

  void row(int stage) {
    const int rank = step_.rank_of_stage(stage);
    const double top = row_top(stage);
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">stage {}</text>)", kLeft - 8, top + 16, stage);
    add(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="#f3f3f3"/>)", kLeft, top, kPlotWidth,
        kRowHeight);
    actions(rank, stage, top);
    for (int stream = kCompute + 1; stream < kStreams; ++stream) transfers(rank, stream, top + kRowHeight);
  }

  std::size_t work_kind(const Span& span) const {
    const std::string& label = step_.graph.labels.name(step_.spans->task(span).label);
    if (label.starts_with("forward.")) return 0;
    if (label.starts_with("backward.") || label.starts_with("recompute.")) return 1;
    return label == "optimizer" ? 2 : 3;
  }

  /// One box for each run of work of the same kind on the same micro-batch and chunk.
  void actions(int rank, int stage, double top) {
    const auto& spans = step_.spans->spans(rank, kCompute);
    const auto& notes = step_.graph.stages[static_cast<std::size_t>(stage)].notes[kCompute];
    for (std::size_t first = 0; first < spans.size();) {
      const std::size_t kind = work_kind(spans[first]);
      const TaskNote& note = notes[first];
      std::size_t last = first;
      while (last + 1 < spans.size() && work_kind(spans[last + 1]) == kind &&
             notes[last + 1].micro_batch == note.micro_batch && notes[last + 1].chunk == note.chunk)
        ++last;
      box(spans[first].start, spans[last].end, kind, note, top);
      first = last + 1;
    }
  }

  void box(Picoseconds start, Picoseconds end, std::size_t kind, const TaskNote& note, double top) {
    const double left = x(start), width = std::max(0.2, x(end) - left);
    const double shade = 1.0 - 0.22 * (note.chunk > 0 ? std::min(note.chunk, 2) : 0);  // later chunks lighter
    const bool has_batch = note.micro_batch >= 0;
    add(R"(<rect x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{:.1f}" fill="{}" fill-opacity="{:.2f}" stroke="white" )"
        R"(stroke-width="0.4"><title>{}{}: {}</title></rect>)",
        left, top, width, kRowHeight, kWork[kind].colour, shade, kWork[kind].name,
        has_batch ? fmt::format(", micro-batch {}, chunk {}", note.micro_batch, note.chunk) : "",
        duration(end - start));
    if (has_batch && width > 13)
      add(R"(<text x="{:.2f}" y="{:.1f}" text-anchor="middle" fill="white" font-size="10">{}</text>)", left + width / 2,
          top + 15.5, note.micro_batch);
  }

  static std::size_t transfer_kind(int stream) {
    if (stream == kStates || stream == kWorld) return 1;
    return stream == kSendForward || stream == kSendBackward ? 2 : 0;
  }

  /// A strip below the row; neighbours that the eye cannot tell apart are drawn as one.
  void transfers(int rank, int stream, double top) {
    constexpr double kVisibleGap = 0.4;
    double left = -1, right = -1;
    const std::string_view colour = kTransfers[transfer_kind(stream)].colour;
    const auto flush = [&] {
      if (right > left)
        add(R"(<rect x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{:.1f}" fill="{}"/>)", left, top,
            std::max(0.3, right - left), kStripHeight, colour);
    };
    for (const Span& span : step_.spans->spans(rank, stream)) {
      if (span.start > span.arrival && x(span.start) - x(span.arrival) > kVisibleGap)
        add(R"(<rect x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{:.1f}" fill="{}"><title>waiting</title></rect>)",
            x(span.arrival), top, x(span.start) - x(span.arrival), kStripHeight, kTransfers[3].colour);
      if (span.end == span.start) continue;
      if (x(span.start) > right + kVisibleGap) {
        flush();
        left = x(span.start);
      }
      right = x(span.end);
    }
    flush();
  }

  void time_axis(double top) {
    const double seconds = to_seconds(step_.end).value;
    if (seconds <= 0) return;
    const double power = std::pow(10.0, std::floor(std::log10(seconds / 5)));
    const double factor = seconds / 5 / power;
    const double unit = power * (factor < 2 ? 1 : factor < 5 ? 2 : 5);
    for (int i = 0; i * unit <= seconds; ++i) {
      const Picoseconds time = to_picoseconds(Seconds(i * unit));
      add(R"(<path d="M{0:.1f} {1:.1f}v5" stroke="#555"/><text x="{0:.1f}" y="{2:.1f}" text-anchor="middle">{3}</text>)",
          x(time), top, top + 17, i == 0 ? "0" : duration(time));
    }
  }

  // ---- memory

  void memory() {
    std::int64_t highest = 0;
    bool used[kMemoryCategories] = {};
    for (const MemoryTimeline& timeline : simulation_.memory) {
      highest = std::max(highest, timeline.peak.value);
      for (std::size_t i = 0; i < kMemoryCategories; ++i) used[i] = used[i] || timeline.at_peak[i] > 0;
    }
    double left = kLeft;
    for (std::size_t i = 0; i < kMemoryCategories; ++i)
      if (used[i]) legend_entry(left, memory_top_ - 14, name_of(static_cast<MemoryCategory>(i)), kMemoryColours[i]);
    const Bytes limit = simulation_.profile.verdict.limit;
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end" fill="#c00">limit {:.2f} GiB</text>)", kLeft + kPlotWidth,
        memory_top_ - 5, static_cast<double>(limit.value) / kGiB);
    const double scale = 1.15 * static_cast<double>(highest);
    for (const MemoryTimeline& timeline : simulation_.memory) plot(timeline, scale);
  }

  /// Highest total in each pixel column, and what it consists of.
  std::vector<BytesByCategory> columns(const MemoryTimeline& timeline) const {
    const auto count = static_cast<std::size_t>(kPlotWidth);
    std::vector<BytesByCategory> result(count);
    std::vector<std::int64_t> highest(count, -1);
    BytesByCategory now = timeline.always;
    std::size_t column = 0;
    const auto raise = [&](std::size_t place) {
      std::int64_t sum = 0;
      for (const std::int64_t bytes : now) sum += bytes;
      if (sum > highest[place]) {
        highest[place] = sum;
        result[place] = now;
      }
    };
    raise(0);
    for (const MemoryChange& change : timeline.changes) {
      const auto target = std::min(count - 1, static_cast<std::size_t>(std::max(0.0, x(change.time) - kLeft)));
      while (column < target) raise(++column);
      apply(change, now);
      raise(column);
    }
    while (column + 1 < count) raise(++column);
    return result;
  }

  void plot(const MemoryTimeline& timeline, double scale) {
    const double top = memory_top_ + 4 + static_cast<double>(timeline.stage) * (kMemoryHeight + kMemoryGap);
    const double bottom = top + kMemoryHeight;
    const auto height = [&](double bytes) { return scale > 0 ? kMemoryHeight * bytes / scale : 0.0; };
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">stage {}</text>)", kLeft - 8, top + 32, timeline.stage);
    const auto samples = columns(timeline);
    std::vector<double> base(samples.size(), 0.0);
    for (std::size_t category = 0; category < kMemoryCategories; ++category) {
      std::string upper, lower;
      bool any = false;
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const double from = base[i];
        base[i] += static_cast<double>(samples[i][category]);
        any = any || base[i] > from;
        const double left = kLeft + static_cast<double>(i);
        fmt::format_to(std::back_inserter(upper), "L{:.0f} {:.1f}", left, bottom - height(base[i]));
        lower = fmt::format("L{:.0f} {:.1f}", left, bottom - height(from)) + lower;
      }
      if (any) add(R"(<path d="M{}{}Z" fill="{}"/>)", upper.substr(1), lower, kMemoryColours[category]);
    }
    const auto limit = static_cast<double>(simulation_.profile.verdict.limit.value);
    if (limit <= scale)  // otherwise it is above the picture
      add(R"(<path d="M{:.1f} {:.1f}H{:.1f}" stroke="#c00" stroke-dasharray="4 3" fill="none"/>)", kLeft,
          bottom - height(limit), kLeft + kPlotWidth);
    add(R"(<path d="M{0:.1f} {1:.1f}H{2:.1f}" stroke="#999" fill="none"/>)", kLeft, bottom, kLeft + kPlotWidth);
    peak_mark(timeline, bottom - height(static_cast<double>(timeline.peak.value)), top);
  }

  void peak_mark(const MemoryTimeline& timeline, double y, double top) {
    const double at = x(timeline.peak_time);
    const bool at_the_right = at > kLeft + kPlotWidth - 120;
    add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.5" fill="black"/><text x="{:.1f}" y="{:.1f}" text-anchor="{}" )"
        R"(paint-order="stroke" stroke="white" stroke-width="3">peak {:.2f} GiB</text>)",
        at, y, at_the_right ? at - 6 : at + 6, std::max(top + 9, y - 4), at_the_right ? "end" : "start",
        static_cast<double>(timeline.peak.value) / kGiB);
  }

  const Simulation& simulation_;
  const PlayedStep& step_;
  std::string svg_;
  double memory_top_ = 0;
};

}  // namespace

std::string schedule_svg(const Simulation& simulation) {
  return Picture(simulation).draw();
}

}  // namespace reckon
