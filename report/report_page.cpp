#include "report/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "report/checked_json.h"
#include "report/page_files.h"
#include "report/profile_json.h"
#include "report/result_json.h"

namespace reckon {

namespace {

Json schedule_json(const Schedule& schedule) {
  Json boxes = Json::array();
  for (const ScheduleBox& box : schedule.boxes)
    boxes.push_back({box.stage, box.kind, box.micro_batch, box.chunk, box.start.value, box.end.value});
  return {{"seconds", schedule.step.value},
          {"shown_seconds", schedule.shown.value},
          {"kinds", kScheduleKinds},
          {"boxes", std::move(boxes)}};
}

Json curve_json(const MemoryCurve& curve) {
  Json bytes = Json::object();
  std::vector<std::int64_t> total(curve.bytes.empty() ? 0 : curve.bytes.front().size(), 0);
  for (std::size_t category = 0; category < curve.categories.size(); ++category) {
    bytes[curve.categories[category]] = curve.bytes[category];
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += curve.bytes[category][i];
  }
  return {{"stage", curve.stage}, {"seconds", curve.step.value}, {"bytes", std::move(bytes)}, {"total_bytes", total}};
}

Json roofline_json(const Roofline& roofline) {
  Json ops = Json::array();
  for (const RooflineOp& op : roofline.ops)
    ops.push_back({{"name", op.name},
                   {"phase", op.pass},
                   {"flops", op.flops},
                   {"bytes", op.bytes},
                   {"seconds", op.seconds.value}});
  return {{"peak_flops", roofline.peak.value}, {"bandwidth", roofline.bandwidth.value}, {"ops", std::move(ops)}};
}

Json traffic_json(const std::vector<LinkTraffic>& traffic) {
  Json rows = Json::array();
  for (const LinkTraffic& row : traffic)
    rows.push_back({{"group", row.entry.group},
                    {"collective", row.entry.collective},
                    {"dtype", row.entry.dtype},
                    {"calls", row.entry.calls},
                    {"bytes_per_rank", row.entry.bytes_per_rank},
                    {"link", row.between_nodes ? "between nodes" : "inside a node"}});
  return rows;
}

Json metrics_json(const std::vector<LoggedStep>& metrics) {
  Json rows = Json::array();
  for (const LoggedStep& step : metrics)
    rows.push_back(
        {{"step", step.step}, {"loss", step.loss}, {"grad_norm", step.grad_norm}, {"seconds", step.seconds}});
  return rows;
}

Json report_json(const Report& report) {
  Json data = {{"verdict", report.verdict}, {"summary", report.summary}, {"profiles", Json::array()}};
  for (const StepProfile& profile : report.profiles) data["profiles"].push_back(Json::parse(profile_json(profile)));
  data["comparison"] = report.comparison ? Json::parse(comparison_json(*report.comparison)) : Json();
  data["schedule"] = report.schedule ? schedule_json(*report.schedule) : Json();
  data["memory_over_time"] = Json::array();
  for (const MemoryCurve& curve : report.memory_over_time) data["memory_over_time"].push_back(curve_json(curve));
  data["roofline"] = report.roofline ? roofline_json(*report.roofline) : Json();
  data["traffic"] = traffic_json(report.traffic);
  data["metrics"] = metrics_json(report.metrics);
  data["search"] = report.search ? Json::parse(search_json(*report.search)) : Json();
  data["history"] = report.history ? Json::parse(history_json(*report.history)) : Json();
  data["difference"] = report.difference ? Json::parse(difference_json(*report.difference)) : Json();
  return data;
}

/// JSON that is safe between <script> tags: without `<`, nothing in it can end the script or start a comment.
std::string script_safe(const Json& data) {
  const std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char letter : text) {
    if (letter == '<') safe += "\\u003c";
    else safe += letter;
  }
  return safe;
}

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '&': escaped += "&amp;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += letter;
    }
  }
  return escaped;
}

/// The frame with its {names} filled in, in one pass: what is put in is not searched again.
std::string filled(std::string_view frame, const std::vector<std::pair<std::string_view, std::string_view>>& values) {
  std::string text;
  while (!frame.empty()) {
    const auto starts_here = [&](const auto& value) { return frame.starts_with(value.first); };
    const auto value = std::find_if(values.begin(), values.end(), starts_here);
    if (value != values.end()) {
      text += value->second;
      frame.remove_prefix(value->first.size());
    } else {
      text += frame.front();
      frame.remove_prefix(1);
    }
  }
  return text;
}

}  // namespace

std::string report_page(const Report& report) {
  const std::string title = html_escaped(report.title), summary = html_escaped(report.summary);
  const std::string verdict = html_escaped(report.verdict), data = script_safe(report_json(report));
  return filled(kPageHtml, {{"{title}", title},
                            {"{summary}", summary},
                            {"{verdict}", verdict},
                            {"{style}", kPageStyle},
                            {"{data}", data},
                            {"{script}", kPageScript}});
}

}  // namespace reckon
