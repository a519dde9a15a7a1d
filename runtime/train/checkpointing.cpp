#include "runtime/train/checkpointing.h"

#include <exception>

#include "plan/load_plan.h"
#include "runtime/checkpoint/check_checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/hugging_face_weights.h"
#include "runtime/train/rank_state.h"

namespace reckon {
namespace {

/// What a rank tells the others of its file.
struct RankSeal {
  FileSeal seal;
  bool failed = false;
};

std::vector<RankSeal> exchange(Communicator& world, const FileSeal& own, bool failed) {
  const std::vector<std::int64_t> sent{own.bytes, static_cast<std::int64_t>(own.checksum), failed ? 1 : 0};
  std::vector<std::int64_t> all(sent.size() * static_cast<std::size_t>(world.size()));
  world.all_gather(view(sent), view(all)).wait();
  std::vector<RankSeal> seals;
  for (std::size_t i = 0; i < all.size(); i += 3)
    seals.push_back({{all[i], static_cast<std::uint64_t>(all[i + 1])}, all[i + 2] != 0});
  return seals;
}

FileSeal write_text(const std::filesystem::path& file, const std::string& text) {
  DurableFile out(file);
  out.append(text);
  return out.finish();
}

/// Runs `work` on rank 0; when it fails there, that rank throws and the others hear of it.
template <class Work>
void on_rank_0(Communicator& world, const std::filesystem::path& checkpoints, Work work) {
  if (world.rank() == 0) {
    try {
      work();
    } catch (...) {
      remove_unfinished(checkpoints);
      throw;
    }
  }
  world.barrier().wait();
}

}  // namespace

void save_checkpoint(const Plan& plan, Communicator& world, RankTrainer& trainer,
                     const std::filesystem::path& checkpoints, std::int64_t step) {
  const std::filesystem::path unfinished = unfinished_checkpoint(checkpoints, step);
  on_rank_0(world, checkpoints, [&] { begin_checkpoint(checkpoints, step); });
  FileSeal own;
  std::exception_ptr failure;
  try {
    own = write_rank_state(unfinished / rank_file(world.rank()), trainer.parameters().layout(), trainer.optimizer());
  } catch (...) {
    failure = std::current_exception();
  }
  trainer.fault().reach(RunPhase::checkpoint, step);
  const std::vector<RankSeal> seals = exchange(world, own, failure != nullptr);
  bool earlier_failed = false, any_failed = false;
  for (std::size_t rank = 0; rank < seals.size(); ++rank) {
    earlier_failed = earlier_failed || (seals[rank].failed && rank < static_cast<std::size_t>(world.rank()));
    any_failed = any_failed || seals[rank].failed;
  }
  if (any_failed) {
    if (world.rank() == 0) remove_unfinished(checkpoints);
    world.barrier().wait();
    if (failure && !earlier_failed) std::rethrow_exception(failure);
    world.barrier().wait();  // ends with the error of the rank that failed
  }
  on_rank_0(world, checkpoints, [&] {
    CheckpointManifest manifest{step, plan.train.seed, world.size(), trainer.optimizer().state_names(), {}};
    for (std::size_t rank = 0; rank < seals.size(); ++rank)
      manifest.files[rank_file(static_cast<std::int64_t>(rank))] = seals[rank].seal;
    manifest.files["plan.yaml"] = write_text(unfinished / "plan.yaml", write_plan(plan));
    complete_checkpoint(checkpoints, manifest);
    trainer.fault().reach(RunPhase::latest, step);
    make_latest(checkpoints, step, plan.train.keep_checkpoints);
  });
}

std::int64_t load_checkpoint(const Plan& plan, Communicator& world, RankTrainer& trainer,
                             const std::filesystem::path& checkpoint) {
  const CheckpointReader reader(checkpoint);
  require_resumable(reader, plan);
  reader.verify(static_cast<std::size_t>(world.rank()), static_cast<std::size_t>(world.size()));
  read_rank_state(reader, trainer.parameters().layout(), trainer.optimizer().state_names(), trainer.optimizer());
  trainer.optimizer().gather_weights();
  world.barrier().wait();  // no rank trains before every file was found sound
  return reader.manifest().step;
}

void load_initial_weights(const Plan& plan, Communicator& world, RankTrainer& trainer) {
  const HuggingFaceWeights weights(plan.train.initial_weights);
  weights.require_model(plan.model);
  read_rank_state(weights, trainer.parameters().layout(), {"weight"}, trainer.optimizer());
  trainer.optimizer().gather_weights();
  world.barrier().wait();
}

}  // namespace reckon
