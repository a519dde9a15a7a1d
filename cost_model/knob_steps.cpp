#include "cost_model/knob_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cost_model/predict.h"
#include "plan/choices.h"

namespace reckon {

namespace {

/// "forward.qkv" and its like are compute; collectives go by their group.
std::string part_of_step(const std::string& component) {
  const std::string head = component.substr(0, component.find('.'));
  if (head == "forward" || head == "backward" || head == "recompute") return "compute";
  if (head == "gradient" || head == "parameter") return "gradient and parameter communication";
  if (head == "pipeline" || head == "bubble") return "pipeline waiting";
  if (head == "optimizer" || head == "other" || head == "waiting") return head;
  return head + " communication";
}

struct Turn {
  std::string change;
  Candidate candidate;
  std::string illegal;
};

class Turns {
 public:
  explicit Turns(const Candidate& from) : from_(from) {}

  /// A degree times two (or over two), data over two (or times two).
  void degree(const char* key, std::int64_t Degrees::*member) {
    for (const bool up : {true, false}) {
      Candidate to = from_;
      std::int64_t& value = to.degrees.*member;
      std::int64_t& shrinks = up ? to.degrees.data : value;
      std::int64_t& grows = up ? value : to.degrees.data;
      if (!up && value == 1) continue;
      const bool possible = shrinks % 2 == 0;
      const std::int64_t old_value = value, old_data = to.degrees.data;
      if (possible) {
        shrinks /= 2;
        grows *= 2;
      }
      add(fmt::format("{} {} -> {}, parallel.data {} -> {}", key, old_value, up ? 2 * old_value : old_value / 2,
                      old_data, up ? old_data / 2 : 2 * old_data),
          to, possible ? "" : fmt::format("{} cannot be halved", shrinks));
    }
  }
  template <class Number>
  void number(const char* key, Number Candidate::*member, Number value, std::string illegal = {}) {
    Candidate to = from_;
    to.*member = value;
    add(fmt::format("{} {} -> {}", key, from_.*member, value), to, std::move(illegal));
  }
  void add(std::string change, Candidate to, std::string illegal = {}) {
    turns_.push_back({std::move(change), to, std::move(illegal)});
  }
  const std::vector<Turn>& list() const { return turns_; }

 private:
  Candidate from_;
  std::vector<Turn> turns_;
};

void turn_schedule(Turns& turns, const Plan& base, const Candidate& from) {
  if (from.degrees.pipeline == 1) return;
  const auto chunked = [&](ScheduleKind kind, std::int64_t chunks) {
    Candidate to = from;
    to.schedule = kind;
    to.chunks = chunks;
    turns.add(fmt::format("parallel.schedule {} -> {}, parallel.chunks {} -> {}", name_of(from.schedule), name_of(kind),
                          from.chunks, chunks),
              to);
  };
  if (from.schedule == ScheduleKind::interleaved) chunked(ScheduleKind::one_forward_one_backward, 1);
  const std::int64_t micro_batches = base.batch.global_batch / (from.micro_batch * from.degrees.data);
  if (micro_batches % from.degrees.pipeline != 0) return;
  for (const std::int64_t chunks : chunk_choices(base.model.layers, from.degrees.pipeline))
    if (chunks > from.chunks) return chunked(ScheduleKind::interleaved, chunks);
}

void turn_storage(Turns& turns, const Candidate& from) {
  const auto label = [](std::size_t storage) {
    const auto format = storage_choices()[storage].format;
    return format ? std::string(name_of(*format)) : std::string("as computed");
  };
  for (const int step : {-1, 1}) {
    const std::size_t storage = from.storage + static_cast<std::size_t>(step);  // wraps below 0, then is out of range
    if (storage >= storage_choices().size()) continue;
    Candidate to = from;
    to.storage = storage;
    turns.add(fmt::format("activations.stored {} -> {}", label(from.storage), label(storage)), to);
  }
  for (const Recompute mode : {Recompute::none, Recompute::elementwise, Recompute::full}) {
    if (mode == from.recompute) continue;
    Candidate to = from;
    to.recompute = mode;
    turns.add(fmt::format("activations.recompute {} -> {}", name_of(from.recompute), name_of(mode)), to);
  }
}

Turns all_turns(const Plan& base, const Candidate& from) {
  Turns turns(from);
  turns.degree("parallel.tensor", &Degrees::tensor);
  turns.degree("parallel.pipeline", &Degrees::pipeline);
  turns.degree("parallel.ulysses", &Degrees::ulysses);
  turns.degree("parallel.ring", &Degrees::ring);
  const std::vector<std::int64_t> rows = divisors(base.batch.global_batch / from.degrees.data);
  const auto here = std::find(rows.begin(), rows.end(), from.micro_batch);
  if (here != rows.begin()) turns.number("batch.micro_batch", &Candidate::micro_batch, *std::prev(here));
  if (here + 1 < rows.end()) turns.number("batch.micro_batch", &Candidate::micro_batch, *std::next(here));
  if (from.zero > 0) turns.number("parallel.zero", &Candidate::zero, from.zero - 1);
  if (from.zero < 3) turns.number("parallel.zero", &Candidate::zero, from.zero + 1);
  turn_schedule(turns, base, from);
  turn_storage(turns, from);
  return turns;
}

std::optional<std::string> rule_broken_by(const Plan& base, const Candidate& candidate) {
  if (auto rule = broken_rule(base, candidate.degrees)) return rule;
  const std::int64_t rows = candidate.micro_batch * candidate.degrees.data;
  if (base.batch.global_batch % rows != 0) return "global batch not divisible by micro_batch x data";
  if (candidate.chunks * candidate.degrees.pipeline > base.model.layers) return "more virtual stages than layers";
  if (candidate.schedule != ScheduleKind::interleaved) return std::nullopt;
  if (candidate.degrees.pipeline == 1) return "interleaving needs more than one stage";
  if (base.batch.global_batch / rows % candidate.degrees.pipeline != 0)
    return "interleaving needs a multiple of the stages in micro-batches";
  return std::nullopt;
}

}  // namespace

std::string bound_by(const StepProfile& profile) {
  std::map<std::string, double> parts;
  for (const TimeComponent& time : profile.time) parts[part_of_step(time.component)] += time.exposed_seconds.value;
  std::vector<std::pair<std::string, double>> sorted(parts.begin(), parts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, seconds] : sorted) {
    const double share = 100 * seconds / profile.step.seconds.value;
    if (share < 1) continue;
    text += fmt::format("{}{} {:.0f} %{}", text.empty() ? "" : ", ", name, share, text.empty() ? " of the step" : "");
  }
  return text + fmt::format("; memory {:.0f} % of the limit", 100 * (profile.verdict.need / profile.verdict.limit));
}

std::vector<KnobStep> knob_steps(const Plan& base, const Candidate& candidate) {
  std::vector<KnobStep> steps;
  const Turns turns = all_turns(base, candidate);
  for (const Turn& turn : turns.list()) {
    KnobStep step;
    step.change = turn.change;
    step.illegal = turn.illegal;
    if (step.illegal.empty()) step.illegal = rule_broken_by(base, turn.candidate).value_or("");
    if (step.illegal.empty()) {
      const StepProfile profile = predict(resolve(plan_of(base, turn.candidate)));
      step.fits = profile.verdict.fits;
      step.step = profile.step.seconds;
      step.memory = profile.verdict.need;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace reckon
