#pragma once

#include <string>
#include <vector>

namespace espalier {

// Where Optuna's samplers are, and what a process that asks one of them may use.
struct OptunaOptions {
  std::string python;             // a program, with Optuna in it; empty: there are none
  std::vector<std::string> hubs;  // folders of OptunaHub's packages that studies may name
  double memory_gib = 4;
  double processor_s = 600;  // for one suggestion
};

}  // namespace espalier
