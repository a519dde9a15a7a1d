#include "cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/command_tree.h"
#include "cli/commands/calibrate.h"
#include "cli/commands/compare.h"
#include "cli/commands/completion.h"
#include "cli/commands/doctor.h"
#include "cli/commands/explain.h"
#include "cli/commands/export.h"
#include "cli/commands/import.h"
#include "cli/commands/plan.h"
#include "cli/commands/reproduce.h"
#include "cli/commands/run.h"
#include "cli/commands/score.h"
#include "cli/commands/search.h"
#include "cli/commands/show.h"
#include "cli/commands/simulate.h"
#include "cli/commands/tokenize.h"
#include "cli/commands/version.h"
#include "plan/nearest_name.h"

namespace reckon {

namespace {

using Command = std::function<ExitCode(const Output&)>;

constexpr int kMostDevices = 1 << 24;

/// The parser while it is being built. Options of a command live as long as the command that uses them.
struct Parser {
  CLI::App app{"Predict, simulate, run and compare parallel plans for training large language models.", "reckon"};
  ColourChoice colour = ColourChoice::automatic;
  bool json = false;
  Command chosen;
};

constexpr const char* kOverrides =
    "Trailing key=value overrides the plan file, e.g. parallel.tensor=4; the last one wins.";

/// A command with its options struct; `run` is called with both when the command was given.
template <class Options>
std::pair<CLI::App*, std::shared_ptr<Options>> add_command(Parser& parser, const std::string& name,
                                                           const std::string& description, const std::string& example,
                                                           ExitCode (*run)(const Options&, const Output&)) {
  CLI::App* command = parser.app.add_subcommand(name, description);
  auto options = std::make_shared<Options>();
  command->footer("Example: reckon " + example);
  command->callback([&parser, options, run] {
    parser.chosen = [options, run](const Output& output) { return run(*options, output); };
  });
  return {command, options};
}

/// Trailing overrides of the plan.
template <class Options>
void add_overrides(CLI::App* command, Options& options) {
  command->add_option("KEY=VALUE", options.overrides, kOverrides)->check([](const std::string& text) {
    const auto equals = text.find('=');
    return equals == std::string::npos || equals == 0 ? "`" + text + "` is no override; write key=value" : "";
  });
}

/// PLAN and its trailing overrides.
std::string not_empty(const std::string& value) {
  return value.empty() ? "a value is needed, found an empty one" : "";
}

template <class Options>
void add_plan_arguments(CLI::App* command, Options& options) {
  command->add_option("PLAN", options.plan, "Plan file, or the name of one in configs/plans")->required();
  add_overrides(command, options);
}

template <class Options>
void add_html(CLI::App* command, Options& options) {
  command->add_option("--html", options.html, "Write a report with charts there: one file, opens without a network")
      ->check(not_empty);
}

void add_plan(Parser& parser) {
  auto [command, options] = add_command<PlanOptions>(
      parser, "plan", "Predict memory and speed of a plan in closed form: does it fit, where does the time go",
      "plan llama2-70b-128xa100 parallel.zero=1", plan_command);
  add_plan_arguments(command, *options);
  add_html(command, *options);
}

void add_simulate(Parser& parser) {
  auto [command, options] = add_command<SimulateOptions>(
      parser, "simulate", "Play a plan event by event: memory over time, the first op that runs out, a trace",
      "simulate llama2-70b-128xa100 --memory-limit 70GiB", simulate_command);
  add_plan_arguments(command, *options);
  command->add_option("--trace", options->trace, "Write a trace for the Perfetto viewer (ui.perfetto.dev) there")
      ->check(not_empty);
  command->add_option("--svg", options->picture, "Draw schedule and memory there")->check(not_empty);
  add_html(command, *options);
  command->add_option("--memory-limit", options->memory_limit, "Limit for what a rank allocates, e.g. 40GiB")
      ->check(not_empty);
  command->add_flag("--explain", options->explain, "What each component would save if it were free");
  command->add_option("--samples", options->samples, "Steps to simulate with sim.jitter, for their distribution")
      ->check(CLI::Range(1, 100000));
}

void add_search(Parser& parser) {
  auto [command, options] = add_command<SearchCommand>(
      parser, "search", "Rank every legal plan around a plan's model, hardware and batch; say why the others lose",
      "search llama2-70b-128xa100 --devices 64 --top 5", search_command);
  add_plan_arguments(command, *options);
  command->add_option("--devices", options->devices, "Devices to use (as many as the plan has)")
      ->check(CLI::Range(1, kMostDevices).description(""));
  add_html(command, *options);
  command
      ->add_option(
          "--fix", options->fixed,
          "Keys to leave as the plan has them, e.g. parallel.tensor,activations.stored (nothing stored in fewer bits)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--top", options->top, "Plans to list (10)")->check(CLI::PositiveNumber);
  command->add_option("--threads", options->threads, "Threads; the result does not depend on them (one per core)")
      ->check(CLI::PositiveNumber);
  auto* limit =
      command->add_option("--time-limit", options->time_limit, "Stop after this time, e.g. 30s, with what was found");
  command->add_option("--limit-seconds", options->limit_seconds, "The same as a number of seconds")
      ->check(CLI::PositiveNumber)
      ->excludes(limit);
}

void add_reproduce(Parser& parser) {
  auto [command, options] = add_command<ReproduceOptions>(
      parser, "reproduce", "The tables of a paper: published, predicted, error", "reproduce agoq", reproduce_command);
  command->add_option("PAPER", options->paper, "agoq or hsap")
      ->required()
      ->check(CLI::IsMember({"agoq", "hsap"}).description(""));
}

void add_score(Parser& parser) {
  auto [command, options] =
      add_command<ScoreCommand>(parser, "score", "Score predictions against a table of measured runs",
                                "score runs.csv --rows --tolerance 0.1", score_command);
  command->add_option("FILE", options->file, "CSV with one measured run a row (columns: docs/score.md)")->required();
  command->add_flag("--rows", options->rows, "Every row too, with the reason of those that were skipped");
  command->add_option("--group-by", options->group_by, "Column that groups rows (bar if there is one, else source_id)");
  command->add_option("--fill", options->fill, "COLUMN=VALUE for the empty cells of a column")->allow_extra_args(false);
  command->add_option("--map", options->map, "COLUMN:OLD=NEW replaces a value")->allow_extra_args(false);
  command->add_option("--recompute", options->recompute, "For rows that do not say: both, none or full")
      ->check(CLI::IsMember({"both", "none", "full"}).description(""));
  command->add_option("--tflops", options->tflops, "Convention of rows that only state TFLOP/s")
      ->check(CLI::IsMember({"none", "megatron_hw", "model_causal", "model_full"})
                  .description("none, megatron_hw, model_causal, model_full"));
  command->add_option("--tolerance", options->tolerance, "Exit with 5 if the time MAPE of a group is beyond");
  add_overrides(command, *options);
}

void add_show(Parser& parser) {
  auto [command, options] = add_command<ShowOptions>(
      parser, "show", "List known models, hardware, plans or number formats, or show a model or hardware",
      "show llama2-13b", show_command);
  command->add_option("WHAT", options->what, "models, hardware, plans, formats, a name, or a path (also a config.json)")
      ->required();
}

void add_run(Parser& parser) {
  auto [command, options] = add_command<RunOptions>(
      parser, "run", "Predict, execute and compare a plan; starts its ranks, or joins the mpirun or srun it runs under",
      "run cpu-demo --steps 20 --out runs/first train.data=texts", run_command);
  add_plan_arguments(command, *options);
  command->add_option("--steps", options->steps, "Optimizer steps, over train.steps of the plan");
  command->add_option("--out", options->out, "Folder of the run (runs/PLAN-DATE)");
  command->add_option("--backend", options->backend, "threads, mpi or nccl (mpi on CPUs, nccl on GPUs)")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, Backend>{
                                      {"threads", Backend::threads}, {"mpi", Backend::mpi}, {"nccl", Backend::nccl}})
              .description(""));
  command->add_flag("--check-gradients", options->check_gradients,
                    "After the last step, compare gradients with those of everything kept (gradients.json)");
  command->add_option("--resume", options->resume, "Folder of an earlier run whose last checkpoint to go on from");
}

void add_compare(Parser& parser) {
  auto [command, options] = add_command<CompareOptions>(
      parser, "compare",
      "Set prediction beside measurement, component by component, with the signed error; runs over time; plan against "
      "plan, key by key",
      "compare runs/first --tolerance 0.15", compare_command);
  command
      ->add_option("WHAT", options->subjects,
                   "A run's folder; two or more profiles or folders, the last one the reference; or a plan and another "
                   "plan or KEY=VALUE")
      ->required();
  command
      ->add_option("--tolerance", options->tolerances,
                   "Exit with 5 if an error is beyond: 10% for step time and peak memory, QUANTITY=1% for others, e.g. "
                   "memory=1%,time.forward=10%")
      ->allow_extra_args(false);
  command->add_flag("--history", options->history, "WHAT are runs or folders of runs: does the prediction get better?");
  add_html(command, *options);
}

void add_tokenize(Parser& parser) {
  auto [command, options] =
      add_command<TokenizeOptions>(parser, "tokenize", "Text or JSONL to a token file with document borders",
                                   "tokenize texts --out corpus.tokens", tokenize_command);
  command
      ->add_option("INPUT", options->input,
                   "Text file or folder, JSONL (field \"text\"), or Megatron .bin/.idx, whose tokens are copied")
      ->required();
  command->add_option("--out", options->out, "Token file to write")->required();
  command->add_option("--tokenizer", options->tokenizer, "bytes, or the path of a SentencePiece model (bytes)");
}

void add_calibrate(Parser& parser) {
  auto [command, options] = add_command<CalibrateOptions>(
      parser, "calibrate", "Measure this machine and write a hardware file (hardware: local)", "calibrate --quick",
      calibrate_command);
  command->add_option("--out", options->out, "Hardware file (default: the one that `hardware: local` reads)");
  command->add_flag("--quick", options->quick, "Under 20 s; reused until host, build or 30 days have passed");
  command->add_flag("--force", options->force, "Measure again even if the kept file is good");
  command->add_option("--plan", options->plans, "Measure the exact shapes of this plan too; more than once for several")
      ->allow_extra_args(false);
  auto* from_run = command->add_option("--from-run", options->from_run,
                                       "Store one correction factor from this run's folder instead of measuring");
  command->add_flag("--without-correction", options->without_correction, "Remove the stored correction factor")
      ->excludes(from_run);
  command->add_option("--ranks", options->ranks, "Ranks that measure at the same time (one per core)")
      ->check(CLI::PositiveNumber);
  add_overrides(command, *options);
}

void add_import(Parser& parser) {
  auto [command, options] = add_command<ImportCommand>(
      parser, "import", "Turn the launch file of another tool into a plan; say what became of each of its fields",
      "import train.sh --devices 64 --hardware a100-80gb-8x --out plan.yaml", import_command);
  command
      ->add_option(
          "FILE", options->file,
          "Hugging Face config.json, Megatron-LM script or arguments, DeepSpeed JSON, TorchTitan TOML, nanotron "
          "or accelerate YAML")
      ->required();
  command->add_option("--from", options->kind,
                      "huggingface, megatron, deepspeed, torchtitan, nanotron or accelerate (found out)");
  command->add_option("--out", options->out, "Plan file to write (standard output)");
  command->add_option("--devices", options->devices, "Ranks that run, over what the file says")
      ->check(CLI::Range(1, 1 << 20).description(""));
  command->add_option("--hardware", options->hardware, "Name of configs/hardware, or a path (h100-80gb-8x)");
  command->add_flag("--strict", options->strict, "A field that is not understood is an error");
  add_overrides(command, *options);
}

void add_export(Parser& parser) {
  auto [command, options] =
      add_command<ExportCommand>(parser, "export",
                                 "Write a plan as the arguments or file of another tool and name what that tool cannot "
                                 "be told; or a run's weights "
                                 "as a folder of Hugging Face",
                                 "export llama2-70b-128xa100 --to megatron --out train.sh", export_command);
  add_plan_arguments(command, *options);
  command->add_option("--to", options->target, fmt::format("{}", fmt::join(export_targets(), ", ")))->required();
  command->add_option("--out", options->out, "File to write (standard output); huggingface: a new folder");
}

void add_explain(Parser& parser) {
  auto [command, options] = add_command<ExplainCommand>(
      parser, "explain",
      "Which tensor has a size; what binds a plan and what would help; why a plan is slower than another",
      "explain llama2-70b-128xa100 \"Tried to allocate 512.00 MiB\"", explain_command);
  command->add_option("PLAN", options->plan, "Plan file, or the name of one in configs/plans")->required();
  command->add_option(
      "WITH", options->rest,
      "A size or a pasted out-of-memory line, or a second plan; key=value overrides the plan in front of it");
  command
      ->add_option("--most-devices", options->most_devices,
                   "Largest number of devices to try for the smallest plan (8 x the plan's)")
      ->check(CLI::Range(1, 1 << 20).description(""));
}

OptionWords words_of(const CLI::Option& option) {
  OptionWords words;
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
  if (words.names.empty()) words.names.push_back(option.get_name(true));
  words.description = option.get_description();
  words.takes_value = option.get_type_size() != 0 && option.get_expected_max() != 0;
  return words;
}

CommandTree command_tree(const CLI::App& app) {
  CommandTree tree{app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) tree.options.push_back(words_of(*option));
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    CommandWords words{command->get_name(), command->get_description(), command->get_footer(), {}, {}};
    for (const CLI::Option* option : command->get_options()) {
      const bool general = option->check_name("--help");
      if (!general) (option->get_positional() ? words.arguments : words.options).push_back(words_of(*option));
    }
    tree.commands.push_back(std::move(words));
  }
  return tree;
}

void add_completion(Parser& parser) {
  auto [command, options] = add_command<CompletionCommand>(
      parser, "completion", "Print the completion script of a shell, or the manual page", "completion bash", nullptr);
  command->add_option("SHELL", options->shell, "bash, zsh, fish, or man for the manual page")->required();
  command->callback([&parser, options = options] {
    parser.chosen = [options, tree = command_tree(parser.app)](const Output& output) {
      return completion_command(*options, tree, output);
    };
  });
}

void add_doctor(Parser& parser) {
  CLI::App* command = parser.app.add_subcommand(
      "doctor", "Say what is installed, which backends there are, and what brings the missing parts");
  command->footer("Example: reckon doctor");
  command->callback([&parser] { parser.chosen = doctor_command; });
}

void add_general_options(Parser& parser) {
  CLI::App& app = parser.app;
  app.require_subcommand(0, 1);
  app.fallthrough();  // general options may also stand after the command
  app.set_help_flag("-h,--help", "Show this help, or a command's with `reckon COMMAND --help`");
  app.add_flag("--json", parser.json, "One JSON document on standard output, nothing else there");
  const std::map<std::string, ColourChoice> choices = {
      {"auto", ColourChoice::automatic}, {"always", ColourChoice::always}, {"never", ColourChoice::never}};
  app.add_option("--color", parser.colour, "auto, always or never; auto also honours NO_COLOR")
      ->transform(CLI::CheckedTransformer(choices).description(""));
  app.add_flag_callback(
      "--version", [&parser] { parser.chosen = version_command; }, "Version and build parts");
  app.footer(
      "Exit codes: 0 success, 2 usage or configuration, 3 broken rule, 4 does not fit, 5 disagreement,\n"
      "6 run failed, 7 timeout. Memory is in GiB (2^30).");
}

std::string words_about(const CLI::ParseError& error, const Parser& parser, int argc, const char* const* argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : parser.app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    std::string message = fmt::format("there is no command `{}`", argv[1]);
    if (const std::string near = nearest_name(argv[1], names); !near.empty())
      message += fmt::format("; did you mean `reckon {}`?", near);
    return message + " See `reckon --help`.";
  }
  const auto given = parser.app.get_subcommands();
  return fmt::format("{}. See `reckon {}--help`.", error.what(), given.empty() ? "" : given[0]->get_name() + " ");
}

constexpr const char* kGeneralOptions =
    "General options, also behind a command: --json, --color; see `reckon --help`.\n";

ExitCode print_help(const Output& output, const std::string& help) {
  output.result(help);
  return ExitCode::success;
}

}  // namespace

Invocation parse_arguments(int argc, const char* const* argv) {
  Parser parser;
  add_general_options(parser);
  add_plan(parser);
  add_simulate(parser);
  add_search(parser);
  add_run(parser);
  add_compare(parser);
  add_calibrate(parser);
  add_reproduce(parser);
  add_score(parser);
  add_tokenize(parser);
  add_show(parser);
  add_import(parser);
  add_export(parser);
  add_explain(parser);
  add_doctor(parser);
  add_completion(parser);
  try {
    parser.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto given = parser.app.get_subcommands();
    const std::string help = given.empty() ? parser.app.help() : given[0]->help("reckon") + kGeneralOptions;
    parser.chosen = [help](const Output& output) { return print_help(output, help); };
  } catch (const CLI::ParseError& error) {
    throw ConfigError(words_about(error, parser, argc, argv));
  }
  if (!parser.chosen) throw ConfigError("a command is missing, e.g. `reckon plan PLAN`. See `reckon --help`.");
  return {parser.colour, parser.chosen};
}

}  // namespace reckon
