#include "runtime/train/rank_groups.h"

#include <algorithm>

#include "plan/reduction_buffers.h"
#include "plan/replicated_weights.h"

namespace reckon {
namespace {

std::unique_ptr<GroupCalls> make_group(const RankGrid& grid, Group group, Communicator& world, StepTimer& timer) {
  const std::vector<std::int64_t> members = grid.members(group, world.rank());
  if (grid.size(group) == 1) return nullptr;  // on every rank alike
  const auto own = std::find(members.begin(), members.end(), world.rank());
  auto communicator = world.split(static_cast<int>(*std::min_element(members.begin(), members.end())),
                                  static_cast<int>(own - members.begin()), std::string(name_of(group)));
  return std::make_unique<GroupCalls>(std::move(communicator), group, timer);
}

/// Tensor ranks r with the same r * kv_heads / tensor, null where every rank has key/value heads of its own.
std::unique_ptr<GroupCalls> make_key_value_replicas(const Plan& plan, const Coordinates& at, Communicator& world,
                                                    StepTimer& timer) {
  const std::int64_t replicas = reckon::key_value_replicas(plan);
  if (replicas == 1) return nullptr;
  const auto key = static_cast<int>(at.tensor % replicas);
  auto communicator = world.split(world.rank() - key, key, std::string(name_of(Group::tensor)));
  return std::make_unique<GroupCalls>(std::move(communicator), Group::tensor, timer);
}

}  // namespace

RankGroups::RankGroups(const Plan& plan, Communicator& world, StepTimer& timer) {
  const RankGrid grid(plan);
  coordinates = grid.coordinates(world.rank());
  tensor = make_group(grid, Group::tensor, world, timer);
  ulysses = make_group(grid, Group::ulysses, world, timer);
  ring_keys = make_group(grid, Group::ring, world, timer);
  ring_gradients = make_group(grid, Group::ring, world, timer);
  if (plan.parallel.zero == 0) {
    gradient = make_group(grid, Group::gradient, world, timer);
  } else {
    shard = make_group(grid, Group::shard, world, timer);
    replica = make_group(grid, Group::replica, world, timer);
  }
  if (exchanges_by_node(plan)) {
    gradient_inside = make_group(grid, Group::gradient_inside, world, timer);
    gradient_across = make_group(grid, Group::gradient_across, world, timer);
  }
  key_value_replicas = make_key_value_replicas(plan, coordinates, world, timer);
  if (plan.model.tied_head && plan.parallel.pipeline > 1) embedding = make_group(grid, Group::embedding, world, timer);
  stage_outputs = make_group(grid, Group::pipeline, world, timer);
  stage_gradients = make_group(grid, Group::pipeline, world, timer);
}

std::vector<GroupCalls*> RankGroups::all() const {
  std::vector<GroupCalls*> groups;
  for (const auto* group :
       {&tensor, &ulysses, &ring_keys, &ring_gradients, &gradient, &shard, &replica, &gradient_inside, &gradient_across,
        &key_value_replicas, &embedding, &stage_outputs, &stage_gradients})
    if (*group) groups.push_back(group->get());
  return groups;
}

bool RankGroups::counts(const LocalParameter& parameter) const {
  if (parameter.tied_copy) return false;
  if (parameter.whole.split == Split::replicated) return coordinates.tensor == 0;
  if (parameter.whole.split == Split::kv_rows && key_value_replicas) return key_value_replicas->rank() == 0;
  return true;
}

}  // namespace reckon
