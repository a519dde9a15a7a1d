#include "runtime/train/machine_watch.h"

#include <ATen/ATen.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace reckon {
namespace {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ticks_per_second() {
  return static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// Of all cores since boot, stolen time included; 0 where there is no /proc/stat.
double busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
  if (!(file >> cpu >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen)) return 0;
  return (user + nice + system + interrupts + soft + stolen) / ticks_per_second();
}

double own_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double cores() {
  return static_cast<double>(std::max(1u, std::thread::hardware_concurrency()));
}

/// Whether this is the first rank of its process, which answers for all of it.
bool first_of_process(Communicator& world) {
  std::vector<double> ids(static_cast<std::size_t>(world.size()), 0.0);
  ids[static_cast<std::size_t>(world.rank())] = static_cast<double>(::getpid());
  world.all_reduce(view(ids)).wait();
  const auto own = ids.begin() + world.rank();
  return std::find(ids.begin(), own, *own) == own;
}

}  // namespace

MachineWatch::MachineWatch(Communicator& world, int computing)
    : world_(world),
      computes_(world.rank() < computing),
      counts_process_(first_of_process(world)),
      a_(at::ones({384, 384}, at::kFloat)),
      b_(at::ones({384, 384}, at::kFloat)),
      c_(at::empty({384, 384}, at::kFloat)),
      fastest_(std::numeric_limits<double>::infinity()) {
  for (int warm_up = 0; warm_up < 3; ++warm_up) reference_seconds();
}

MachineWatch::Reading MachineWatch::read() const {
  return {busy_seconds(), counts_process_ ? own_seconds() : 0.0, wall_seconds()};
}

/// Of the slowest rank: the fastest of a few, so that only what lasts is seen.
double MachineWatch::reference_seconds() {
  double seconds[] = {0.0};
  if (computes_) {
    seconds[0] = std::numeric_limits<double>::infinity();
    for (int repeat = 0; repeat < 4; ++repeat) {
      const double start = wall_seconds();
      at::mm_out(c_, a_, b_);
      seconds[0] = std::min(seconds[0], wall_seconds() - start);
    }
  }
  world_.all_reduce(view(seconds), Reduction::maximum).wait();
  fastest_ = std::min(fastest_, seconds[0]);
  return seconds[0];
}

void MachineWatch::begin() {
  slowest_of_visit_ = reference_seconds();
  world_.barrier().wait();
  before_ = read();
}

bool MachineWatch::end() {
  const Reading after = read();
  slowest_of_visit_ = std::max(slowest_of_visit_, reference_seconds());
  double own[] = {after.own - before_.own};
  world_.all_reduce(view(own)).wait();
  double visit[] = {0.0};
  const double machine = cores() * (after.wall - before_.wall);
  if (world_.rank() == 0 && machine > 0) visit[0] = std::max(0.0, after.busy - before_.busy - own[0]) / machine;
  world_.all_reduce(view(visit)).wait();
  others_of_visit_ = visit[0];
  double resolution[] = {2.0 / ticks_per_second() / machine};  // the kernel counts whole ticks
  world_.all_reduce(view(resolution), Reduction::maximum).wait();
  return others_of_visit_ > kMostOthers + resolution[0] || slowest_of_visit_ > kSlowestProduct * fastest_;
}

void MachineWatch::keep(bool noisy) {
  Quietness& q = quietness_;
  q.others = (q.others * q.visits + others_of_visit_) / (q.visits + 1);
  q.slowest = std::max(q.slowest, slowest_of_visit_ / fastest_);
  ++q.visits;
  if (noisy) ++q.noisy;
}

}  // namespace reckon
