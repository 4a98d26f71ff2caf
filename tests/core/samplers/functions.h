#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "search_spaces/search_space.h"

namespace espalier::testing {

// A function to minimise over a search space, known from the literature on optimisation.
struct TestFunction {
  std::string name;
  std::string space_json;
  double (*value)(const Parameters&);
  double optimum;
};

const std::vector<TestFunction>& TestFunctions();
const TestFunction& FunctionNamed(const std::string& name);

// The best value a sampler finds in `trials` trials, one after the other.
double BestOf(const std::string& sampler, const Options& options, const TestFunction& function,
              int trials, std::uint64_t seed);

// The middle of BestOf over seeds 0, 1, ...
double MedianBest(const std::string& sampler, const Options& options, const TestFunction& function,
                  int trials, int seeds);

}  // namespace espalier::testing
