#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "trial_runner/torch/process/device.h"

namespace espalier {

// A device that is a step behind. Each look at its clock is a second later than the one before.
class LateTimer final : public StepTimer {
 public:
  void Begin(Part part) override { began_[part] = now_s_++; }
  void End(Part part) override {
    const double took_s = now_s_++ - began_.at(part);
    if (part == Part::kCompute) times_.compute_s += took_s;
    if (part == Part::kSync) times_.sync_s += took_s;
    if (part == Part::kAccumulation) times_.accumulation_s += took_s;
    if (part == Part::kLastMicrobatch) times_.last_microbatch_s += took_s;
  }
  std::vector<Times> EndStep() override {
    std::vector<Times> passed;
    if (last_) passed.push_back(*last_);
    last_ = std::exchange(times_, {});
    return passed;
  }
  void Reset() override {
    times_ = {};
    last_.reset();
  }

 private:
  double now_s_ = 0;
  std::map<Part, double> began_;
  Times times_;
  std::optional<Times> last_;
};

}  // namespace espalier
