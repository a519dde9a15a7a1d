#include "runtime/train/rank_groups.h"

#include <algorithm>

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

}  // namespace

RankGroups::RankGroups(const Plan& plan, Communicator& world, StepTimer& timer) {
  const RankGrid grid(plan.parallel);
  coordinates = grid.coordinates(world.rank());
  tensor = make_group(grid, Group::tensor, world, timer);
  gradient = make_group(grid, Group::gradient, world, timer);
  if (plan.parallel.zero > 0) shard = make_group(grid, Group::shard, world, timer);
  stage_outputs = make_group(grid, Group::pipeline, world, timer);
  stage_gradients = make_group(grid, Group::pipeline, world, timer);
}

}  // namespace reckon
