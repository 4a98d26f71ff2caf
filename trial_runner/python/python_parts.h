#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trial_runner/elastic/scaling_rules.h"
#include "trial_runner/python/parcel.h"
#include "trial_runner/torch/checkpoints/checkpoint_format.h"
#include "trial_runner/torch/engine/parts.h"
#include "trial_runner/torch/engine/training_engine.h"
#include "trial_runner/torch/state.h"

namespace espalier::python {

// What the training runtime sees of a program in Python: tensors that it was given, and callbacks.
// All of it throws CallbackError where Python has raised an exception.

class PythonModel final : public ModelPart {
 public:
  explicit PythonModel(std::int64_t number) : number_(number) {}

  std::vector<NamedTensor> Parameters() const override { return Ask(kParameters); }
  std::vector<NamedTensor> Buffers() const override { return Ask(kBuffers); }
  absl::Status SetBuffers(const std::vector<NamedTensor>& buffers) override;
  std::string OtherState() const override;
  void SetOtherState(const std::string& bytes) override;
  std::optional<std::string> DeferHooks() override;
  void CallHooks() override;
  // Programs in Python evaluate in loops of their own, and set the mode themselves.
  void BeginEvaluation() override {}
  void EndEvaluation() override {}

 private:
  // What Python is asked of a model: see EspalierCallbacks::model.
  enum What {
    kParameters,
    kBuffers,
    kSetBuffers,
    kOtherState,
    kSetOtherState,
    kDeferHooks,
    kCallHooks
  };

  std::vector<NamedTensor> Ask(What what) const;

  const std::int64_t number_;
};

class PythonOptimizer final : public OptimizerPart {
 public:
  PythonOptimizer(std::int64_t model, const ModelDescription& described, bool is_adam);

  std::vector<std::vector<at::Tensor>> Groups() const override { return groups_; }
  double Rate(std::size_t group) const override { return rates_[group]; }
  void Step(std::span<const double> factors, const at::Tensor& found_inf) override;
  bool IsAdam() const override { return is_adam_; }
  std::vector<Preconditioner> Preconditioners(const std::vector<at::Tensor>& parameters,
                                              const std::vector<std::size_t>& groups) override;
  void StartGroup() override;
  Compared WhatToCompare() const override;
  std::vector<std::string> NamesOfTensors() const override;
  void Write(StateWriter& to) const override;
  absl::Status Read(StateReader& from) override;
  absl::Status Settle() override;
  void Clear() override;

  std::size_t groups() const { return groups_.size(); }
  void SetRates(std::vector<double> rates) { rates_ = std::move(rates); }
  // In the order of Groups(), of parameters that are trained. They stay the optimizer's own.
  void SetSecondMoments(SecondMoments moments) { moments_ = std::move(moments); }
  double last_factor() const { return last_factor_; }

 private:
  const std::int64_t model_;
  const std::vector<std::vector<at::Tensor>> groups_;
  const bool is_adam_;
  std::vector<double> rates_;
  double last_factor_ = 1;
  std::vector<at::Tensor> trained_;  // of all groups those that required a gradient at first
  SecondMoments moments_;            // of these
  std::optional<Parcel> arriving_;
};

// A scaling rule that is a class in Python.
class PythonRule final : public ScalingRule {
 public:
  explicit PythonRule(std::int64_t number) : number_(number) {}
  double Factor(const ScalingContext& context) const override;

 private:
  const std::int64_t number_;
};

class PythonState final : public State {
 public:
  explicit PythonState(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void Save(std::ostream& to) const override;
  void Load(std::istream& from) override;
  void Sync() override;

 private:
  const std::string name_;
};

class PythonSums final : public ProgramSums {
 public:
  bool empty() const override { return false; }
  std::string Own() const override;
  absl::Status Merge(const std::vector<std::string>& parts) override;
};

// Checkpoints as torch.save writes them and torch.load reads them: a pickle of a dictionary, which
// Python makes, and the memory of its tensors, which is copied and written here without Python.
class PythonCheckpoints final : public CheckpointFormat {
 public:
  std::unique_ptr<TrainingStateCopy> Copy(const CheckpointTexts& texts,
                                          const States& states) const override;
  absl::StatusOr<CheckpointTexts> Load(const std::string& path, const States& states) override;
  std::string PositionIn(const std::string& path) const override;
};

}  // namespace espalier::python
