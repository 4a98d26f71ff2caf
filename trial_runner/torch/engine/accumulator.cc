#include "trial_runner/torch/accumulator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/engine/training_engine.h"

namespace espalier {

Accumulator::Accumulator(AdaptiveDataParallel& parallel, std::string name,
                         std::vector<std::string> sums)
    : engine_(parallel.engine()),
      name_(std::move(name)),
      sums_(std::move(sums)),
      begin_(engine_.sums().AddAccumulator(name_, sums_)),
      number_(engine_.sums().accumulators()) {}

void Accumulator::Add(const std::string& sum, double value) {
  const auto found = std::find(sums_.begin(), sums_.end(), sum);
  if (found == sums_.end()) {
    BadUse(absl::StrCat("accumulator \"", name_, "\" has no sum \"", sum,
                        "\": it has: ", absl::StrJoin(sums_, ", ")));
  }
  engine_.sums().Add(begin_ + static_cast<std::size_t>(found - sums_.begin()), value);
}

std::map<std::string, double> Accumulator::Synchronize() {
  const std::vector<double> values = engine_.SynchronizeSums(number_, begin_, sums_.size());
  std::map<std::string, double> by_name;
  for (std::size_t i = 0; i < sums_.size(); ++i) by_name[sums_[i]] = values[i];
  return by_name;
}

}  // namespace espalier
