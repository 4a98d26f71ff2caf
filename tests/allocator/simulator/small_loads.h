#pragma once

#include <cmath>
#include <memory>
#include <string>

#include "allocator/simulator/application.h"
#include "allocator/simulator/cluster.h"
#include "gtest/gtest.h"

namespace espalier {

// Trains `epochs` epochs of a hundred steps of 32 samples; a sample takes 10 ms on one slot, and
// an all-reduce 20 ms within a node, 80 ms between two. Twice the batch is worth 1.6 steps.
inline ApplicationRecord SmallRecord(int epochs = 3) {
  ApplicationRecord record;
  record.name = "small";
  record.epochs = epochs;
  for (const std::int64_t batch : {32, 64, 128}) {
    RecordedBatch& recorded = record.batches.emplace_back();
    recorded.global_batch = batch;
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      recorded.epochs.push_back(
          {100.0 * epoch, 3200.0 * epoch / static_cast<double>(batch), {.sqr = 1, .var = 4}});
    }
  }
  for (const std::string ring : {"1", "2", "11", "12", "22"}) {
    int replicas = 0;
    for (const char digit : ring) replicas += digit - '0';
    for (const std::int64_t batch : {8, 16, 32, 64, 128}) {
      const double sync_s = replicas == 1 ? 0.0001 : ring.size() > 1 ? 0.08 : 0.02;
      record.rings.push_back({ring, batch, {0.01 * static_cast<double>(batch) + sync_s, sync_s}});
    }
  }
  return record;
}

inline std::shared_ptr<const Application> SmallApplication(int epochs = 3) {
  auto application = Application::Make(SmallRecord(epochs));
  EXPECT_TRUE(application.ok()) << application.status();
  return *application;
}

// `jobs` of them, half a minute apart, on two nodes of two slots.
inline ClusterLoad SmallLoad(int jobs, int epochs = 3) {
  ClusterLoad load{.name = "small", .jobs = {}, .nodes = 2, .slots_per_node = 2};
  const auto application = SmallApplication(epochs);
  for (int i = 0; i < jobs; ++i) {
    load.jobs.push_back({"job " + std::to_string(i), 30.0 * i, application, 2, 64});
  }
  return load;
}

}  // namespace espalier
