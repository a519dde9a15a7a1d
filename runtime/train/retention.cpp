#include "runtime/train/retention.h"

#include <algorithm>

namespace reckon {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

std::vector<int> storage_roots(const OpList& list) {
  std::vector<int> roots;
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    int root = static_cast<int>(i);
    while (list.tensors[at(root)].storage_of >= 0) root = list.tensors[at(root)].storage_of;
    roots.push_back(root);
  }
  return roots;
}

std::vector<std::vector<int>> storage_aliases(const OpList& list) {
  std::vector<std::vector<int>> aliases(list.tensors.size());
  for (std::size_t i = 0; i < list.tensors.size(); ++i)
    aliases[at(storage_name(list, static_cast<int>(i)))].push_back(static_cast<int>(i));
  return aliases;
}

KeptSet everything_saved(const OpList& list) {
  KeptSet set;
  std::vector<int> first(list.tensors.size(), -1);
  for (std::size_t o = list.ops.size(); o-- > 0;)
    for (const int tensor : list.ops[o].saved) first[at(storage_name(list, tensor))] = static_cast<int>(o);
  for (std::size_t name = 0; name < first.size(); ++name)
    if (first[name] >= 0)
      set.kept.push_back({static_cast<int>(name),
                          {list.tensors[name].format},
                          held_bytes(list, static_cast<int>(name)),
                          false,
                          first[name]});
  return set;
}

Retention::Retention(const OpList& list, const KeptSet& set)
    : stays(list.tensors.size(), 0),
      kept_of(list.tensors.size()),
      by_name(list.tensors.size(), nullptr),
      needed_until(list.tensors.size(), -1) {
  const std::vector<int> roots = storage_roots(list);
  std::vector<Bytes> plain(list.tensors.size());
  std::vector<char> has_plain(list.tensors.size(), 0);
  for (const KeptTensor& kept : set.kept) {
    const std::size_t root = at(roots[at(kept.tensor)]);
    kept_of[root].push_back(kept);
    if (kept.encoded) continue;
    plain[root] += kept.bytes;
    has_plain[root] = 1;
  }
  for (std::size_t root = 0; root < stays.size(); ++root) {
    stays[root] = has_plain[root] != 0 && plain[root] >= held_bytes(list, static_cast<int>(root));
    for (const KeptTensor& kept : kept_of[root]) by_name[at(kept.tensor)] = &kept;
  }
  for (const int root : roots) stays_by_tensor.push_back(stays[at(root)]);
  for (std::size_t o = list.ops.size(); o-- > 0;)
    for (const int tensor : list.ops[o].saved) needed_until[at(storage_name(list, tensor))] = static_cast<int>(o);
  for (const KeptTensor& kept : set.kept) needed_until[at(kept.tensor)] = kept.needed_until;
}

}  // namespace reckon
