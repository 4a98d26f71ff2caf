#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search_spaces/search_space.h"

namespace espalier::benchmarks {

// What one trial comes to and how long it takes to.
struct ObjectiveTrial {
  double step_s = 1;
  std::vector<std::vector<double>> curves;  // by objective, a value after each step; less is better

  std::vector<double> End() const;
};

// A search for several things at once whose trials train for some steps. Values at the last step
// follow from the parameters; how curves come to them also from the trial's seed.
struct ObjectiveProblem {
  std::string name;
  std::string space_json{};
  int steps = 0;
  double start_s = 0.5;             // from a trial's first moment on a slot to its first step
  std::vector<double> reference{};  // of the hypervolume
  // Points of the best front, evenly enough spread that they dominate nearly what it does.
  std::vector<std::vector<double>> front{};
  std::function<ObjectiveTrial(const Parameters&, std::uint64_t seed)> run{};

  std::size_t objectives() const { return reference.size(); }
};

// The analytic ones, and the one recorded in the folder's fashion_mlp.jsonl. An error names the
// file.
absl::StatusOr<std::vector<ObjectiveProblem>> ObjectiveProblems(const std::string& folder);

// What the rows within the problem's reference point dominate there.
double VolumeOf(const ObjectiveProblem& problem, const std::vector<std::vector<double>>& rows);

}  // namespace espalier::benchmarks
