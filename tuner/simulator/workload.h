#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "allocator/goodput/goodput.h"
#include "tuner/core/state/study.h"

namespace espalier {

// How a trial trains on some slots: one reported step (usually an epoch) is `iterations` optimizer
// steps of the same length.
struct Pace {
  double iterations = 1;   // of one reported step
  double iteration_s = 1;  // with its all-reduce
  double grad_s = 1;       // of which: computing
};

// The truth about one simulated trial, which the tuner learns only by what the trial reports.
class TrialTruth {
 public:
  virtual ~TrialTruth() = default;

  virtual BatchBounds bounds() const = 0;
  virtual GradientNoise noise() const { return {}; }
  virtual std::int64_t steps() const = 0;  // it ends after so many reported steps
  virtual Pace On(int nodes, int replicas) const = 0;
  virtual double ValueAfter(std::int64_t nth) const = 0;  // 1 to steps()
  // Figures that it tells beside that value, by name; at its end all that its study needs.
  virtual std::map<std::string, double> FiguresAfter(std::int64_t) const { return {}; }
  // What the program calls its nth reported step.
  virtual std::int64_t StepNumber(std::int64_t nth) const { return nth; }
};

// What a simulated study trains. Pure; one owner. Batches are fixed: the global batch of a trial
// does not change with its replicas.
class Workload {
 public:
  virtual ~Workload() = default;

  // The study, complete but for what a simulation varies (policy, pruner, limits, seed).
  virtual StudySpec Study() const = 0;
  // What the trial runs with: what the study's sampler chose, unless the load has its own list, by
  // trial number.
  virtual Parameters ParametersOf(const Trial& trial) { return trial.parameters; }
  virtual std::unique_ptr<TrialTruth> Begin(const Trial& trial) = 0;
  // Whether its trials tell the further metrics of their study, and the figures that it bounds.
  virtual bool TellsFigures() const { return false; }
};

}  // namespace espalier
