#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "trial_runner/torch/gradients/preconditioner.h"
#include "trial_runner/torch/group/state_stream.h"

namespace espalier {

// The seam between the training runtime and what a program trains. The runtime sees tensors; only
// the implementations of these two know to which classes they belong (LibTorch's, or PyTorch's in
// Python). The training thread calls everything; an exception ends the step, hand-over or
// checkpoint under way.

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// A model.
class ModelPart {
 public:
  virtual ~ModelPart() = default;

  // Its tensors at this moment, in an order that is the same on each replica. A program may replace
  // buffers by others, and add some.
  virtual std::vector<NamedTensor> Parameters() const = 0;
  virtual std::vector<NamedTensor> Buffers() const = 0;
  // Makes these its buffers, in place of those that it has. Fails where it cannot have one of that
  // name.
  virtual absl::Status SetBuffers(const std::vector<NamedTensor>& buffers) = 0;
  // What else is part of its state, as bytes; empty: nothing.
  virtual std::string OtherState() const { return {}; }
  virtual void SetOtherState(const std::string& /*bytes*/) {}

  // The program has set hooks on gradients of parameters. Such a hook is to see the gradient of the
  // step, and not the part of it that a replica or a microbatch has. Nothing: from here on they
  // stand back in backward passes whose gradients are summed later. Else the name of a parameter
  // with a hook, which cannot be trained.
  virtual std::optional<std::string> DeferHooks() = 0;
  // Calls those hooks with the gradients that the parameters have now; what they return becomes the
  // content of these.
  virtual void CallHooks() = 0;

  // Evaluation mode, and afterwards the mode that each of its modules was in before.
  virtual void BeginEvaluation() = 0;
  virtual void EndEvaluation() = 0;
};

// The optimizer of a model.
class OptimizerPart {
 public:
  virtual ~OptimizerPart() = default;

  // The parameters that it steps, by group.
  virtual std::vector<std::vector<at::Tensor>> Groups() const = 0;
  // The learning rate of a group as the program has set it.
  virtual double Rate(std::size_t group) const = 0;

  // Steps with each group's rate times its factor; the rates are the program's again afterwards.
  // `found_inf`: defined only if UseFusedKernels() was true, see FusedOptimizer.
  virtual void Step(std::span<const double> factors, const at::Tensor& found_inf) = 0;
  // From here on steps are taken by fused kernels, if there are some for this optimizer.
  virtual bool UseFusedKernels() { return false; }
  // Takes back what the host counted for the last step, which the device has left out.
  virtual void TakeBack() {}

  // Whether it divides by a second moment as Adam does, which decides the default scaling rule.
  virtual bool IsAdam() const = 0;
  // See preconditioner.h. `parameters` are those of Groups() that are trained, `groups` theirs.
  virtual std::vector<Preconditioner> Preconditioners(const std::vector<at::Tensor>& parameters,
                                                      const std::vector<std::size_t>& groups) = 0;

  // A group begins, whose members have one state: what was made of the former state is made anew,
  // so that it is the same on those that have been given theirs.
  virtual void StartGroup() {}

  // What is compared between replicas: the tensors of its state, in an order that is the same on
  // each, and the numbers of its state and options (schedules' among them) as bytes.
  struct Compared {
    std::vector<at::Tensor> tensors;
    std::string numbers;
  };
  virtual Compared WhatToCompare() const = 0;
  virtual std::vector<std::string> NamesOfTensors() const = 0;  // of those, for messages

  // Options and state, without the parameters.
  virtual void Write(StateWriter& to) const = 0;
  // Takes over what Write wrote on another replica. Its large tensors have not arrived yet.
  virtual absl::Status Read(StateReader& from) = 0;
  // All that Read expected has arrived.
  virtual absl::Status Settle() { return absl::OkStatus(); }
  // Gives up all state. What Read expected may still be written to.
  virtual void Clear() = 0;
};

}  // namespace espalier
