#include "plan/collective.h"

#include <stdexcept>

namespace reckon {

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return "all_reduce";
    case Collective::all_gather: return "all_gather";
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::all_to_all: return "all_to_all";
    case Collective::broadcast: return "broadcast";
    case Collective::send_receive: return "send_receive";
  }
  throw std::logic_error("unknown collective");
}

std::string_view name_of(Group group) {
  switch (group) {
    case Group::tensor: return "tensor";
    case Group::ulysses: return "ulysses";
    case Group::ring: return "ring";
    case Group::expert: return "expert";
    case Group::data: return "data";
    case Group::gradient: return "gradient";
    case Group::expert_gradient: return "expert_gradient";
    case Group::shard: return "shard";
    case Group::replica: return "replica";
    case Group::gradient_inside: return "gradient_inside";
    case Group::gradient_across: return "gradient_across";
    case Group::pipeline: return "pipeline";
    case Group::embedding: return "embedding";
    case Group::world: return "world";
  }
  throw std::logic_error("unknown group");
}

double bytes_sent_per_rank(Collective collective, Bytes bytes, int ranks) {
  if (ranks < 1) throw std::logic_error("a collective needs at least one rank");
  const auto size = static_cast<double>(bytes.value);
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (collective) {
    case Collective::all_reduce: return 2.0 * size * others;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all: return size * others;
    case Collective::broadcast:
    case Collective::send_receive: return ranks == 1 ? 0.0 : size;
  }
  throw std::logic_error("unknown collective");
}

}  // namespace reckon
