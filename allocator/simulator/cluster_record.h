#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "allocator/simulator/cluster.h"
#include "allocator/simulator/timeline.h"

namespace espalier {

// Records what becomes of the jobs of a load, by their index in it.
class ClusterRecord {
 public:
  explicit ClusterRecord(const ClusterLoad& load);

  void Decided(std::size_t job, double at_s, int slots, int nodes, int resizes, std::string reason);
  void Completed(std::size_t job, double at_s);
  // The timeline, with its figures.
  Timeline Finish() &&;

 private:
  struct Open {
    double from_s = 0;
    int slots = 0;
    int nodes = 0;
  };
  void Close(std::size_t job, double at_s);

  Timeline timeline_;
  std::vector<Open> open_;  // what each job holds; no slots: nothing
};

}  // namespace espalier
