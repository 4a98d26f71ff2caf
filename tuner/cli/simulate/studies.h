#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace espalier {

enum class SimulatedLoad { kPoolbench, kEmulated, kStudy };

// What `tuner simulate` accepts for loads that are studies. Negative or empty: the load's own.
struct SimulateStudyArguments {
  int slots = 16;
  int nodes = 1;
  std::vector<std::string> pool_sizes;  // rules; empty: all nodes from the start
  int min_nodes = 0;
  double node_start_s = 60;
  double node_price = 0;
  std::string node_templates;  // a file
  double time_limit_s = 0;
  std::vector<std::string> policies;
  std::string pruner;
  std::string sampler;
  std::int64_t trials = 0;
  std::int64_t seed = -1;
  std::int64_t concurrent = 0;
  double resize_s = -1;
  double start_s = -1;
  double start_cpu_s = -1;
  double cores = -1;
  double start_spread = -1;
  std::int64_t start_seed = 0;
  double spare_start_s = -1;
  double until_s = 0;
  std::string rule = "sqrt";
  bool stream = false;
  double target = 0;
  bool has_target = false;
  std::string study_file;   // emulated
  std::string profile;      // emulated
  std::int64_t epochs = 0;  // 0: as the study's command says
  std::int64_t samples = 0;
  std::string database;  // study
  std::string study;
  std::string json_file;
  std::string lanes_file;
  std::string decisions_file;
  std::string html_file;
};

// What is wrong with the text of an option that is a time of the simulation; empty: nothing.
std::string CheckSimulatedSeconds(const std::string& text);

// Simulates, prints the figures, and writes the files that were asked for.
absl::Status SimulateStudies(SimulatedLoad load, const SimulateStudyArguments& arguments);

}  // namespace espalier
