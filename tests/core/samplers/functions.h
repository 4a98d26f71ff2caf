#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "search_spaces/search_space.h"

namespace espalier {
class Sampler;
struct ScoredTrial;
}  // namespace espalier

namespace espalier::testing {

// A function to minimise over a search space: from the literature on optimisation, or a made-up
// training.
struct TestFunction {
  std::string name;
  std::string space_json;
  double (*value)(const Parameters&);
  double optimum;    // its least value
  double noise = 0;  // standard deviation of what is added to each trial's value
};

// Those of the benchmark.
const std::vector<TestFunction>& TestFunctions();
// Others, of 5 to 40 parameters, by which rules are chosen that the benchmark is to judge.
const std::vector<TestFunction>& DevelopmentFunctions();
const TestFunction& FunctionNamed(const std::string& name);
// Not among them, for tests with a prior: how far x and y, 0 to 1 each, are from 0.3.
const TestFunction& Bowl();

// The value that a trial is told: with its noise, which follows from seed and trial number.
double ToldValue(const TestFunction& function, const Parameters& parameters, std::uint64_t seed,
                 std::int64_t trial_number);

// By trial, one after the other, the function's value, without noise, at the parameters that were
// told to be the best so far. Shorter if the sampler has nothing left to suggest.
std::vector<double> BestByTrial(const std::string& sampler, const Options& options,
                                const TestFunction& function, int trials, std::uint64_t seed);

// The same of a sampler that has been made, and that may learn from trials of another study.
std::vector<double> BestByTrial(const Sampler& sampler, const TestFunction& function, int trials,
                                std::uint64_t seed, std::span<const ScoredTrial> before = {});

// The last of them, for at least one trial.
double BestOf(const std::string& sampler, const Options& options, const TestFunction& function,
              int trials, std::uint64_t seed);

// The middle of BestOf over seeds 0, 1, ...
double MedianBest(const std::string& sampler, const Options& options, const TestFunction& function,
                  int trials, int seeds);

// For functions of parameters: they have one of this name and kind.
double Number(const Parameters& parameters, std::string_view name);
std::string Text(const Parameters& parameters, std::string_view name);
// Of all parameters, where all are numbers.
std::vector<double> Numbers(const Parameters& parameters);

// The space of x0, x1, ... that are uniform in a range "[low, high]".
std::string Box(int dimensions, const char* range);

// Takes x to its mirror image in the plane through 0 across `normal`.
void Reflect(const std::vector<double>& normal, std::vector<double>& x);

}  // namespace espalier::testing
