// What becomes of each storage of a section after the last op that touches it in forward, worked out from the plan's
// kept set once: it stays, parts of it are copied out or encoded, or it goes. The rules are those of
// plan/memory_events.h, so that counted bytes equal predicted ones.
#pragma once

#include <vector>

#include "plan/kept_tensors.h"
#include "plan/layer_ops.h"

namespace reckon {

struct Retention {
  std::vector<char> stays;                       // by root: its parts that are kept as computed cover it
  std::vector<char> stays_by_tensor;             // by tensor: its storage stays
  std::vector<std::vector<KeptTensor>> kept_of;  // by root: what is kept of it
  std::vector<const KeptTensor*> by_name;        // by storage name; null where nothing is kept
  std::vector<int> needed_until;                 // by storage name: op whose backward reads it last; -1 = none does

  Retention(const OpList& list, const KeptSet& set);
  Retention(const Retention&) = delete;  // by_name points into kept_of
  Retention& operator=(const Retention&) = delete;
};

/// By tensor: index of the storage that it lies in.
std::vector<int> storage_roots(const OpList& list);
/// By storage name: the tensors that are other names of it, itself included.
std::vector<std::vector<int>> storage_aliases(const OpList& list);
/// Everything that some op's backward reads, kept as computed: what a section that runs again holds.
KeptSet everything_saved(const OpList& list);

}  // namespace reckon
