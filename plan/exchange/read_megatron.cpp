// Megatron-LM arguments (megatron/training/arguments.py; the defaults are those of its parser): sizes, batch, stages.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "plan/exchange/layer_pattern.h"
#include "plan/exchange/megatron_parts.h"
#include "plan/spec_yaml.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

constexpr std::string_view kWorld = "launcher: nnodes x nproc_per_node";

class MegatronReader {
 public:
  explicit MegatronReader(ForeignReading reading)
      : reading_(reading), options_(reading.options), plan_(reading.plan), in_(reading.fields) {}

  void read() {
    read_row_length();
    tensor_ = in_.count_or({"--tensor-model-parallel-size"}, "parallel.tensor", 1);
    model_ = read_megatron_model(reading_, std::clamp<std::int64_t>(tensor_, 1, 1 << 20), sequence_);
    in_.set("model", model_yaml(model_));
    read_degrees();
    read_world();
    read_batch();
    read_stages();
    read_sharding();
    read_recomputation();
    read_megatron_training(reading_, data_ * context_);
  }

 private:
  void read_row_length() {
    sequence_ = in_.count({"--seq-length", "--encoder-seq-length"}, "batch.sequence_length").value_or(0);
    if (sequence_ > 0) in_.set("batch.sequence_length", sequence_);
    else in_.missing("batch.sequence_length");
  }

  void read_degrees() {
    pipeline_ = in_.count_or({"--pipeline-model-parallel-size"}, "parallel.pipeline", 1);
    context_ = in_.count_or({"--context-parallel-size"}, "parallel.ring", 1);
    expert_ = in_.count_or({"--expert-model-parallel-size"}, "parallel.expert", 1);
    for (std::int64_t* degree : {&tensor_, &pipeline_, &context_, &expert_})
      if (*degree < 1 || *degree > 1 << 20)
        *degree = 1, in_.wrong("--tensor-model-parallel-size", "every parallel size is a whole number from 1 to 2^20");
    in_.set("parallel.tensor", tensor_);
    in_.set("parallel.pipeline", pipeline_);
    read_context();
    if (model_.is_moe() || expert_ > 1) in_.set("parallel.expert", expert_);
    const std::int64_t expert_tensor =
        in_.count({"--expert-tensor-parallel-size"}, "parallel.tensor", "of the experts").value_or(tensor_);
    if (model_.is_moe() && expert_tensor != tensor_)
      in_.not_understood("--expert-tensor-parallel-size",
                         fmt::format("the plan splits experts over the tensor group of {} as all else", tensor_));
    bool sequence = in_.flag_or({"--sequence-parallel"}, "parallel.sequence", false);
    if (sequence && tensor_ == 1) {
      in_.warn(fmt::format("{} does nothing at tensor parallel size 1: Megatron switches it off",
                           in_.called("--sequence-parallel")));
      sequence = false;
    }
    in_.set("parallel.sequence", sequence);
  }

  void read_context() {
    if (context_ == 1) return in_.ignore({"--cp-comm-type"}, "there is no context parallelism");
    const std::string kind = in_.text_or({"--cp-comm-type"}, "parallel.ring", "p2p");
    const SourceField* levels = in_.find("--hierarchical-context-parallel-sizes");
    std::int64_t ulysses = kind == "a2a" ? context_ : 1;
    if (kind == "a2a+p2p" && levels != nullptr && levels->value.items.size() == 2) {
      const std::vector<std::int64_t> sizes =
          numbers_in(levels->value.items[0].text + " " + levels->value.items[1].text);
      if (sizes.size() != 2 || sizes[0] * sizes[1] != context_)
        return in_.contradiction(levels->key, fmt::format("{} must multiply to {} = {}", in_.called(levels->key),
                                                          in_.called("--context-parallel-size"), context_));
      ulysses = sizes[0];
      in_.use(levels->key, "parallel.ulysses", "inside; the ring outside");
    } else if (kind != "p2p" && kind != "a2a") {
      in_.not_understood("--cp-comm-type",
                         fmt::format("{} is read as p2p: key/value blocks pass around the ring", kind));
    }
    if (ulysses > 1) in_.set("parallel.ulysses", ulysses);
    if (ulysses == context_) return;
    in_.set("parallel.ring", context_ / ulysses);
    in_.set("documents.placement", std::string_view("zigzag"));
  }

  /// A number that the launcher or the batch system is told, where --devices does not decide.
  std::optional<std::int64_t> launched(Names names) {
    if (options_.devices > 0) return in_.ignore(names, "--devices decides"), std::nullopt;
    for (const std::string_view name : names) {
      const SourceField* field = in_.find(name);
      if (field == nullptr) continue;
      if (field->value.text.find('$') == std::string::npos) break;
      in_.use(name, "parallel.data");
      in_.wrong(name, fmt::format("{} is {}, which neither the script nor an #SBATCH line of it sets; --devices N says "
                                  "how many ranks run",
                                  field->key, field->value.text));
      return std::nullopt;
    }
    return in_.count(names, "parallel.data");
  }

  /// Ranks: --devices, else what the launcher starts; the data parallel size is what is left.
  void read_world() {
    const auto per_node = launched({"--nproc_per_node", "--gpus-per-node", "#SBATCH --gpus-per-node",
                                    "#SBATCH --gres=gpu", "#SBATCH --ntasks-per-node"});
    const auto nodes = launched({"--nnodes", "#SBATCH --nodes"});
    const auto tasks = launched({"#SBATCH --ntasks", "#SBATCH --gpus"});
    std::int64_t world = options_.devices;
    const std::int64_t others = product_of({tensor_, pipeline_, context_});
    if (world == 0 && per_node && *per_node > 0) {
      world = *per_node * nodes.value_or(1);
      if (!nodes) in_.assume("parallel.data", "1 node", "the launcher names no number of nodes");
    }
    if (world == 0 && tasks) world = *tasks;
    if (world <= 0) {
      world = others * std::max<std::int64_t>(1, expert_ / std::gcd(expert_, context_));
      in_.assume(
          "parallel.data", fmt::format("{}", world / others),
          fmt::format("the file does not say how many ranks run; {} are the fewest for its sizes; --devices N says",
                      world));
    }
    if (world % others != 0 || world / others > 1 << 20) {
      const char* cause =
          in_.has("--pipeline-model-parallel-size") ? "--pipeline-model-parallel-size" : "--tensor-model-parallel-size";
      const std::int64_t below = world / others * others;
      in_.contradiction(
          cause,
          fmt::format("tensor x pipeline x context = {} x {} x {} = {} ranks, but {} {} ranks{}; legal: {}{}; "
                      "--devices N sets another number",
                      tensor_, pipeline_, context_, others,
                      options_.devices > 0 ? "--devices gives" : "the launcher starts", world,
                      launcher_text(per_node, nodes), below > 0 ? fmt::format("{} or ", below) : "", below + others));
    }
    data_ = std::max<std::int64_t>(1, world / others);
    in_.set("parallel.data", data_);
    in_.ignore({"--node_rank", "--master_addr", "--master_port", "--rdzv_id", "--rdzv_backend", "--rdzv_endpoint",
                "--max_restarts", "--nnodes", "--nproc_per_node", "--tee", "--log-dir", "--redirects"},
               kWorld);
  }

  std::string launcher_text(const std::optional<std::int64_t>& per_node,
                            const std::optional<std::int64_t>& nodes) const {
    if (options_.devices > 0 || !per_node) return "";
    return fmt::format(" ({} {} x {} {})", in_.called("--nproc_per_node"), *per_node, in_.called("--nnodes"),
                       nodes.value_or(1));
  }

  void read_batch() {
    BatchFields batch{"--global-batch-size", "--micro-batch-size", "accumulation"};
    batch.micro = in_.count({"--micro-batch-size"}, "batch.micro_batch").value_or(0);
    batch.global = in_.count({"--global-batch-size"}, "batch.global_batch").value_or(0);
    batch.replicas = data_;
    if (batch.micro == 0 && !in_.has("--micro-batch-size"))
      in_.wrong("--micro-batch-size", "the argument --micro-batch-size is missing: it decides batch.micro_batch");
    if (batch.global == 0) {
      batch.accumulation = 1;
      in_.note_default("--global-batch-size", "micro batch x data", "batch.global_batch");
    }
    if (batch.micro > 0) set_batch(in_, batch);
    read_ramp(batch);
    in_.not_modelled({"--step-batch-size-schedule", "--global-batch-size-schedule", "--rampup-batch-size"},
                     "the plan is that of the full --global-batch-size");
  }

  /// start, increment, samples: each batch on the way must be a whole number of micro-batches on every replica.
  void read_ramp(const BatchFields& batch) {
    const SourceField* ramp = in_.find("--rampup-batch-size");
    if (ramp == nullptr) return;
    const std::int64_t rows = batch.micro * data_;
    if (ramp->value.kind != YamlValue::Kind::sequence || ramp->value.items.size() < 2 || rows <= 0) return;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto numbers = numbers_in(ramp->value.items[i].text);
      if (numbers.empty() || numbers.front() % rows == 0) continue;
      in_.contradiction("--rampup-batch-size",
                        fmt::format("{}: the {} of {} rows is no multiple of micro batch x data = {} x {} = {}",
                                    in_.called("--rampup-batch-size"), i == 0 ? "start" : "increment", numbers.front(),
                                    batch.micro, data_, rows));
    }
  }

  void read_stages() {
    const auto per_chunk = in_.count({"--num-layers-per-virtual-pipeline-stage"}, "parallel.chunks");
    std::int64_t chunks = in_.count({"--num-virtual-stages-per-pipeline-rank"}, "parallel.chunks").value_or(1);
    if (per_chunk && *per_chunk > 0) {
      chunks = model_.layers / pipeline_ / *per_chunk;
      if (chunks < 1 || chunks * pipeline_ * *per_chunk != model_.layers) {
        in_.contradiction("--num-layers-per-virtual-pipeline-stage",
                          fmt::format("{} layers are not {} stages x a whole number of chunks of {} layers ({}, {})",
                                      model_.layers, pipeline_, *per_chunk, in_.called("--num-layers"),
                                      in_.called("--num-layers-per-virtual-pipeline-stage")));
      }
    }
    if (chunks > 1 && pipeline_ == 1) {
      in_.warn("virtual pipeline stages do nothing without a pipeline");
      chunks = 1;
    }
    in_.set("parallel.schedule", std::string_view(chunks > 1 ? "interleaved" : "1f1b"));
    if (chunks > 1) in_.set("parallel.chunks", chunks);
    read_uneven_stages(std::max<std::int64_t>(1, std::min<std::int64_t>(chunks, 1024)) * pipeline_);
    in_.not_understood("--pipeline-model-parallel-layout", "give parallel.layers_per_stage for stages of your own");
  }

  void read_uneven_stages(std::int64_t stages) {
    const auto first = in_.count({"--decoder-first-pipeline-num-layers"}, "parallel.layers_per_stage");
    const auto last = in_.count({"--decoder-last-pipeline-num-layers"}, "parallel.layers_per_stage");
    const std::string partition = in_.text({"--pp-partition-method"}, "parallel.layers_per_stage").value_or("");
    const bool with_tables = partition.find("embedding") != std::string::npos;  // Megatron-DeepSpeed
    const auto has_slot = [&](std::string_view name) {
      return in_.flag({name}, "parallel.layers_per_stage").value_or(false) || with_tables;
    };
    const bool embedding = has_slot("--account-for-embedding-in-pipeline-split");
    const bool loss = has_slot("--account-for-loss-in-pipeline-split");
    const std::int64_t slots = model_.layers + (embedding ? 1 : 0) + (loss ? 1 : 0);
    if (stages == 1 || stages > 100000) return;
    std::vector<std::int64_t> layers;
    if (first || last) {
      const std::int64_t between = stages - (first ? 1 : 0) - (last ? 1 : 0);
      const std::int64_t rest = model_.layers - first.value_or(0) - last.value_or(0);
      if (between > 0 && (rest < 0 || rest % between != 0))
        return in_.contradiction(first ? "--decoder-first-pipeline-num-layers" : "--decoder-last-pipeline-num-layers",
                                 fmt::format("{} of {} layers are left for {} stages in between, which does not come "
                                             "out even",
                                             rest, model_.layers, between));
      layers.assign(static_cast<std::size_t>(stages), between > 0 ? rest / between : 0);
      if (first) layers.front() = *first;
      if (last) layers.back() = *last;
    } else if (slots % stages == 0) {
      layers.assign(static_cast<std::size_t>(stages), slots / stages);
      if (embedding) --layers.front();
      if (loss) --layers.back();
    } else {
      const std::int64_t lower = slots / stages * stages, upper = lower + stages;
      return in_.contradiction(
          "--num-layers", fmt::format("{} layers{} do not divide into {} stages of the pipeline; legal: {} or {} "
                                      "layers, or --decoder-first-pipeline-num-layers",
                                      model_.layers, embedding || loss ? " with the slots of embedding and loss" : "",
                                      stages, lower - (slots - model_.layers), upper - (slots - model_.layers)));
    }
    if (embedding || loss || first || last) in_.set("parallel.layers_per_stage", to_yaml(layers));
  }

  void read_sharding() {
    std::int64_t zero = in_.flag_or({"--use-distributed-optimizer"}, "parallel.zero", false) ? 1 : 0;
    const bool fully = in_.flag({"--use-megatron-fsdp", "--use-custom-fsdp"}, "parallel.zero").value_or(false) ||
                       in_.flag({"--use-torch-fsdp2"}, "parallel.zero").value_or(false);
    if (fully) {
      const std::string strategy = in_.text_or({"--data-parallel-sharding-strategy"}, "parallel.zero",
                                               in_.has("--use-torch-fsdp2") ? "optim_grads_params" : "no_shard");
      const std::vector<std::string> known = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
      const auto found = std::find(known.begin(), known.end(), strategy);
      if (found == known.end())
        in_.wrong(
            "--data-parallel-sharding-strategy",
            fmt::format("--data-parallel-sharding-strategy {} is not one of {}", strategy, fmt::join(known, ", ")));
      else zero = found - known.begin();
    } else {
      in_.ignore({"--data-parallel-sharding-strategy"}, "without --use-megatron-fsdp it does nothing");
    }
    in_.set("parallel.zero", zero);
    if (zero > 0 && data_ * context_ == 1)
      in_.warn(fmt::format("{} shards nothing: there is one replica", in_.called("--use-distributed-optimizer")));
  }

  void read_recomputation() {
    std::string granularity = in_.text({"--recompute-granularity"}, "activations.recompute").value_or("");
    if (in_.flag({"--recompute-activations"}, "activations.recompute").value_or(false)) granularity = "selective";
    if (in_.flag({"--checkpoint-activations"}, "activations.recompute")
            .value_or(false)) {  // older versions: every layer
      in_.set("activations.recompute", std::string_view("full"));
      return in_.set("activations.recompute_layers", to_yaml(std::vector<std::int64_t>{most_layers()}));
    }
    if (granularity.empty()) {
      in_.note_default("--recompute-granularity", "none", "activations.recompute");
      in_.ignore({"--recompute-method", "--recompute-num-layers", "--recompute-modules"},
                 "without --recompute-granularity it does nothing");
      return in_.set("activations.recompute", std::string_view("none"));
    }
    if (granularity != "selective" && granularity != "full")
      return in_.wrong("--recompute-granularity",
                       fmt::format("--recompute-granularity {} is neither selective nor full", granularity));
    in_.set("activations.recompute", std::string_view(granularity));
    if (granularity == "full") return read_recomputed_layers();
    if (const SourceField* modules = in_.find("--recompute-modules")) {
      if (modules->value.text == "core_attn") {
        in_.use(modules->key, "activations.recompute");
      } else {
        in_.not_understood("--recompute-modules",
                           "the plan recomputes the attention core; other modules by "
                           "activations.classes");
      }
    }
    in_.set("activations.recompute_layers", to_yaml(std::vector<std::int64_t>{most_layers()}));
  }

  /// Layers of the fullest stage: one number that stands for all layers of every stage.
  std::int64_t most_layers() const {
    const YamlValue* parallel = plan_.plan.find("parallel");
    const YamlValue* listed = parallel == nullptr ? nullptr : parallel->find("layers_per_stage");
    if (listed == nullptr) return pipeline_ > 0 ? (model_.layers + pipeline_ - 1) / pipeline_ : model_.layers;
    std::vector<std::int64_t> layers;
    from_yaml(*listed, layers);
    std::vector<std::int64_t> sums(static_cast<std::size_t>(pipeline_), 0);
    for (std::size_t i = 0; i < layers.size(); ++i) sums[i % sums.size()] += layers[i];
    return *std::max_element(sums.begin(), sums.end());
  }

  void read_recomputed_layers() {
    const std::string method = in_.text({"--recompute-method"}, "activations.recompute_layers").value_or("");
    const auto number = in_.count({"--recompute-num-layers"}, "activations.recompute_layers");
    if (method != "uniform" && method != "block")
      in_.contradiction("--recompute-granularity",
                        "--recompute-granularity full needs --recompute-method uniform or block");
    std::int64_t layers = most_layers();
    if (method == "block" && number) {
      const YamlValue* chunks = plan_.plan.find("parallel")->find("chunks");
      layers = std::min<std::int64_t>(layers, *number * (chunks == nullptr ? 1 : std::stoll(chunks->text)));
    } else if (method == "uniform" && number && *number > 1) {
      in_.warn(fmt::format("{} recomputes groups of {} layers; the plan keeps the input of every layer",
                           in_.called("--recompute-num-layers"), *number));
    }
    in_.set("activations.recompute_layers", to_yaml(std::vector<std::int64_t>{layers}));
    in_.not_understood("--distribute-saved-activations", "the kept inputs are not spread over the tensor group");
  }

  ForeignReading reading_;
  const ImportOptions& options_;
  ForeignPlan& plan_;
  SourceFields& in_;
  ModelSpec model_;
  std::int64_t sequence_ = 0, tensor_ = 1, pipeline_ = 1, context_ = 1, expert_ = 1, data_ = 1;
};

}  // namespace

void read_megatron(ForeignReading reading) {
  MegatronReader(reading).read();
}

}  // namespace reckon
