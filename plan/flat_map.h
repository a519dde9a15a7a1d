// A map from whole numbers kept as a sorted vector: for the few dozen tensors of an op list, faster to build and to
// look up than a tree. Same use as std::map as far as it goes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

namespace reckon {

template <class Value>
class FlatMap {
 public:
  using Entry = std::pair<int, Value>;
  using Iterator = typename std::vector<Entry>::iterator;
  using ConstIterator = typename std::vector<Entry>::const_iterator;

  Iterator begin() { return entries_.begin(); }
  Iterator end() { return entries_.end(); }
  ConstIterator begin() const { return entries_.begin(); }
  ConstIterator end() const { return entries_.end(); }

  Iterator find(int key) {
    const Iterator place = lower_bound(key);
    return place != end() && place->first == key ? place : end();
  }
  ConstIterator find(int key) const { return const_cast<FlatMap*>(this)->find(key); }
  bool contains(int key) const { return find(key) != end(); }
  Value& operator[](int key) {
    Iterator place = lower_bound(key);
    if (place == end() || place->first != key) place = entries_.insert(place, {key, Value{}});
    return place->second;
  }
  const Value& at(int key) const {
    const ConstIterator place = find(key);
    if (place == end()) throw std::logic_error("no entry of that number");
    return place->second;
  }
  void reserve(std::size_t entries) { entries_.reserve(entries); }
  void erase(Iterator place) { entries_.erase(place); }
  void clear() { entries_.clear(); }

 private:
  Iterator lower_bound(int key) {
    return std::lower_bound(entries_.begin(), entries_.end(), key,
                            [](const Entry& entry, int wanted) { return entry.first < wanted; });
  }
  std::vector<Entry> entries_;
};

}  // namespace reckon
