// The published table of HSAP (arXiv 2606.30460): useful tokens/s of a device and iterations/s of HSAP, Packing and
// Batching on 8 devices as Ulysses x ring = 8x1, 4x2, 2x4, 1x8. Neither model, nor cluster, nor packs are public, so
// the linear and the quadratic part of a 7B plan's step are fitted on Packing rows, and the pack's sum of squares on
// 8x1.
//
// seconds(S, topology, rho) = constant + linear * A(S) + attention * rho * B(S) + ring(S, topology) * share
// with A, B from the plan's op times; ring = a + b S^2 per topology: the exchange's steps, and imbalance of a causal
// row. Packing and Batching compute and move a whole causal row (rho = share = 1). HSAP computes the pairs inside
// documents and moves what they need. Of n equal documents in order, rho = 1 / n; a border between two ranks falls
// anywhere in a document, so the later rank receives half a document on average, 0.5 rho S of the S tokens of a full
// ring: share = 0.5 rho. Where rows hold one document (rho = 1 at 16K) HSAP is Packing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "cost_model/csv_table.h"
#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "cost_model/reproduce.h"
#include "cost_model/scaled_times.h"
#include "cost_model/step_time.h"
#include "plan/errors.h"

namespace reckon {

namespace {

constexpr double kDevices = 8.0;
constexpr double kDocumentMoved = 0.5;  // assumed, see above: part of a document that a border between ranks moves
constexpr double kPackedFill = 0.9;     // tokens/s x 8 / iterations/s of every Packing and HSAP row is 0.900 S

struct PaperRow {
  std::string method;
  std::int64_t length = 0, ulysses = 0, ring = 0;  // length in K tokens
  double tokens_per_second = 0, iterations_per_second = 0;

  double tokens() const { return 1024.0 * static_cast<double>(length); }
  std::string topology() const { return fmt::format("{}x{}", ulysses, ring); }
  std::string label() const { return fmt::format("{} {}K {}", method, length, topology()); }
  bool packed() const { return method != "Batching"; }
  /// tokens/s has four digits, iterations/s two: the former gives the sharper time of packed rows.
  double seconds() const {
    return packed() ? kPackedFill * tokens() / (kDevices * tokens_per_second) : 1.0 / iterations_per_second;
  }
};

std::vector<PaperRow> read_rows(const ConfigPaths& paths) {
  const std::filesystem::path file = paths.configs / "papers" / "hsap_fineweb.csv";
  const CsvTable table = CsvTable::read(file);
  std::vector<PaperRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto length = table.count(i, "context_length_k"), ulysses = table.count(i, "intra_sp"),
               ring = table.count(i, "inter_sp");
    const auto rate = table.number(i, "throughput_tokens_per_s_per_gpu"),
               iterations = table.number(i, "iterations_per_s");
    if (!length || !ulysses || !ring || !rate || !iterations)
      throw ConfigError(fmt::format("{}: row {} is incomplete", file.string(), i + 1));
    rows.push_back({table.cell(i, "method"), *length, *ulysses, *ring, *rate, *iterations});
  }
  return rows;
}

const PaperRow& find_row(const std::vector<PaperRow>& rows, const std::string& method, std::int64_t length,
                         const std::string& topology) {
  for (const PaperRow& row : rows)
    if (row.method == method && row.length == length && row.topology() == topology) return row;
  throw ConfigError(fmt::format("the table has no row '{} {}K {}'", method, length, topology));
}

constexpr std::array<std::int64_t, 3> kLengths{16, 32, 64};
constexpr std::array<const char*, 3> kRings{"4x2", "2x4", "1x8"};

/// The step of the 7B plan on one node, split into what attention takes and the rest.
struct Split {
  double linear = 0, attention = 0;
};

Split split_step(std::int64_t length, const ConfigPaths& paths) {
  const std::vector<std::string> overrides{fmt::format("batch.sequence_length={}", length * 1024),
                                           "documents.source=single"};
  const Plan plan = resolve(load_plan(paths.configs / "plans" / "hsap-8x1-64k.yaml", overrides, paths));
  const OpTimes times = estimate_op_times(plan);
  const double whole = step_time(plan, times).total.value;
  // Attention is never overlapped in the closed form, so the step is linear in its time.
  const double doubled = step_time(plan, scaled(times, {1.0, 2.0})).total.value;
  return {2.0 * whole - doubled, doubled - whole};
}

struct Fit {
  double constant = 0, linear = 0, attention = 0;
  std::map<std::int64_t, Split> split;
  std::map<std::int64_t, double> rho;                 // by length
  std::map<std::string, std::array<double, 2>> ring;  // by topology: a, b
  std::map<std::int64_t, double> fill;                // of padded rows, by length

  double one_node(std::int64_t length, double visible) const {
    const Split& parts = split.at(length);
    return constant + linear * parts.linear + attention * visible * parts.attention;
  }
  double ring_seconds(const std::string& topology, std::int64_t length, double moved, double visible) const {
    const auto found = ring.find(topology);
    if (found == ring.end()) return 0.0;
    const auto x = static_cast<double>(length) / 16.0;
    return moved * found->second[0] + visible * found->second[1] * x * x;
  }
  double seconds(const PaperRow& row) const {
    const double visible = row.method == "HSAP" ? rho.at(row.length) : 1.0;
    const double moved = visible < 1.0 ? kDocumentMoved * visible : 1.0;
    return one_node(row.length, visible) + ring_seconds(row.topology(), row.length, moved, visible);
  }
};

/// Three constants through the three Packing rows on 8x1 (Cramer's rule). The constant may come out below zero: it then
/// stands for what the plan's own launches and gathers overestimate.
void fit_compute(const std::vector<PaperRow>& rows, Fit& fit) {
  std::array<std::array<double, 4>, 3> m{};
  for (std::size_t i = 0; i < 3; ++i) {
    const Split& parts = fit.split.at(kLengths[i]);
    m[i] = {1.0, parts.linear, parts.attention, find_row(rows, "Packing", kLengths[i], "8x1").seconds()};
  }
  const auto determinant = [&](std::size_t a, std::size_t b, std::size_t c) {
    return m[0][a] * (m[1][b] * m[2][c] - m[2][b] * m[1][c]) - m[0][b] * (m[1][a] * m[2][c] - m[2][a] * m[1][c]) +
           m[0][c] * (m[1][a] * m[2][b] - m[2][a] * m[1][b]);
  };
  const double whole = determinant(0, 1, 2);
  if (whole == 0.0) throw RunError("the Packing rows do not identify the compute constants");
  fit.constant = determinant(3, 1, 2) / whole;
  fit.linear = determinant(0, 3, 2) / whole;
  fit.attention = determinant(0, 1, 3) / whole;
}

/// a + b S^2 by relative least squares on the Packing rows of a topology; neither is negative.
void fit_ring(const std::vector<PaperRow>& rows, const std::string& topology, Fit& fit) {
  double xx = 0, xy = 0, yy = 0, xt = 0, yt = 0;
  for (const std::int64_t length : kLengths) {
    const PaperRow& row = find_row(rows, "Packing", length, topology);
    const double weight = 1.0 / row.seconds(), s = static_cast<double>(length) / 16.0;
    const double x = weight, y = s * s * weight, t = (row.seconds() - fit.one_node(length, 1.0)) * weight;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    xt += x * t;
    yt += y * t;
  }
  const double determinant = xx * yy - xy * xy;
  double a = (xt * yy - yt * xy) / determinant, b = (yt * xx - xt * xy) / determinant;
  if (b < 0.0) a = std::max(0.0, xt / xx), b = 0.0;
  if (a < 0.0) b = std::max(0.0, yt / yy), a = 0.0;
  fit.ring[topology] = {a, b};
}

Fit fit_all(const std::vector<PaperRow>& rows, const ConfigPaths& paths) {
  Fit fit;
  for (const std::int64_t length : kLengths) fit.split[length] = split_step(length, paths);
  fit_compute(rows, fit);
  for (const char* topology : kRings) fit_ring(rows, topology, fit);
  for (const std::int64_t length : kLengths) {
    const double whole = fit.one_node(length, 1.0), none = fit.one_node(length, 0.0);
    const double hsap = find_row(rows, "HSAP", length, "8x1").seconds();
    fit.rho[length] = std::clamp((hsap - none) / (whole - none), 0.0, 1.0);
    const PaperRow& padded = find_row(rows, "Batching", length, "8x1");
    fit.fill[length] = padded.tokens_per_second * kDevices * whole / padded.tokens();
  }
  return fit;
}

bool is_fitted(const PaperRow& row) {
  return row.method == "Packing" || row.topology() == "8x1";
}

std::vector<FittedConstant> constants(const Fit& fit) {
  const std::vector<std::string> packing{"Packing 16K 8x1", "Packing 32K 8x1", "Packing 64K 8x1"};
  std::vector<FittedConstant> list{{"seconds of a step that do not depend on its length", fit.constant, packing},
                                   {"factor on the time of everything but attention", fit.linear, packing},
                                   {"factor on the time of attention", fit.attention, packing}};
  list.push_back({"part of a document that a border between ring ranks moves", kDocumentMoved, {}});
  for (const auto& [topology, ab] : fit.ring) {
    const std::vector<std::string> rows{"Packing 16K " + topology, "Packing 32K " + topology,
                                        "Packing 64K " + topology};
    list.push_back({"ring " + topology + ", seconds of its steps", ab[0], rows});
    list.push_back({"ring " + topology + ", seconds per (16K tokens)^2", ab[1], rows});
  }
  for (const std::int64_t length : kLengths) {
    list.push_back({fmt::format("sum of squared document lengths over the squared row, {}K", length),
                    fit.rho.at(length),
                    {fmt::format("HSAP {}K 8x1", length)}});
    list.push_back({fmt::format("real tokens of a padded row, {}K", length),
                    fit.fill.at(length),
                    {fmt::format("Batching {}K 8x1", length)}});
  }
  return list;
}

struct Errors {
  double sum = 0, worst = 0, count = 0;

  void add(double error) {
    sum += std::abs(error);
    worst = std::max(worst, std::abs(error));
    count += 1.0;
  }
  double mean() const { return count > 0.0 ? sum / count : 0.0; }
};

/// Topologies and lengths at which the predicted order HSAP, Packing, Batching of useful tokens/s is the published one.
double ordered_cells(const std::map<std::string, double>& predicted) {
  double cells = 0.0;
  for (const std::int64_t length : {std::int64_t{32}, std::int64_t{64}}) {
    for (const char* topology : {"8x1", "4x2", "2x4", "1x8"}) {
      const auto rate = [&](const char* method) {
        return predicted.at(fmt::format("{} {}K {}", method, length, topology));
      };
      cells += rate("HSAP") > rate("Packing") && rate("Packing") > rate("Batching") ? 1.0 : 0.0;
    }
  }
  return cells;
}

}  // namespace

ReproductionResult reproduce_hsap(const ConfigPaths& paths) {
  const std::vector<PaperRow> rows = read_rows(paths);
  const Fit fit = fit_all(rows, paths);
  ReproductionResult result;
  result.paper = "HSAP, arXiv 2606.30460: FineWeb, 8 devices; 7B on Hopper assumed";
  result.fitted = constants(fit);
  std::map<std::string, Errors> errors;
  std::map<std::string, double> rates;
  for (const PaperRow& row : rows) {
    const double seconds = fit.seconds(row);
    const double fill = row.packed() ? kPackedFill : fit.fill.at(row.length);
    ReproducedRow entry;
    entry.system = row.label();
    entry.fitted = is_fitted(row);
    entry.published = {{"tokens_per_second_per_device", row.tokens_per_second},
                       {"iterations_per_second", row.iterations_per_second}};
    entry.predicted = {{"tokens_per_second_per_device", fill * row.tokens() / (kDevices * seconds)},
                       {"iterations_per_second", 1.0 / seconds}};
    for (const auto& [name, value] : entry.published) entry.error[name] = entry.predicted.at(name) / value - 1.0;
    rates[row.label()] = entry.predicted.at("tokens_per_second_per_device");
    const std::string kind = row.length == 16 ? "16k" : row.method;
    if (!entry.fitted) errors[kind].add(entry.error.at("tokens_per_second_per_device"));
    result.rows.push_back(std::move(entry));
  }
  result.summary = {
      {"hsap_32k_64k_mape", errors["HSAP"].mean()},         {"hsap_32k_64k_worst", errors["HSAP"].worst},
      {"batching_32k_64k_mape", errors["Batching"].mean()}, {"batching_32k_64k_worst", errors["Batching"].worst},
      {"unexplained_16k_mape", errors["16k"].mean()},       {"order_right_of_8", ordered_cells(rates)}};
  return result;
}

}  // namespace reckon
