// A step of one replica that is alone in this process, in two microbatches of four samples.

#include "trial_runner/torch/engine/optimizer_step.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "trial_runner/torch/checkpoints/libtorch_checkpoint.h"
#include "trial_runner/torch/engine/libtorch_parts.h"
#include "trial_runner/torch/trial.h"

namespace espalier {
namespace {

using Progress = OptimizerStep::Progress;
using ModelOutcome = OptimizerStep::ModelOutcome;

// A model, its optimizer, and what of it there was.
struct SteppedModel {
  at::Tensor Loss() { return net->forward(at::ones({4, 2})).pow(2).mean(); }
  bool Changed() const { return !at::equal(net->weight, before); }
  std::unique_ptr<ModelPart> part() { return std::make_unique<LibTorchModel>(*net); }
  std::unique_ptr<OptimizerPart> steps() { return std::make_unique<LibTorchOptimizer>(optimizer); }

  torch::nn::Linear net{2, 1};
  torch::optim::SGD optimizer{net->parameters(), 0.1};
  at::Tensor before = net->weight.detach().clone();
};

class OptimizerStepTest : public ::testing::Test {
 protected:
  OptimizerStepTest() : collectives_(MakeCollectives(trial_.context().collectives).value()) {
    batches_.SetData(100, {.initial = 8, .max_global = 8, .min_atomic = 1, .max_atomic = 4});
    state_.position.batch_size = 8;
  }
  void Begin() {
    group_.Join({.address = "", .batch = batches_.bounds(), .total_steps = 1});
    step_.StartGroup();
    step_.Begin(batches_.Plan(state_.position, 0, 1, 1));
    ASSERT_EQ(step_.plan()->microbatches.size(), 2U);
  }
  // For programs that run backward themselves.
  void BeginPasses() {
    step_.BeginMicrobatch();
    step_.OpenPasses();
  }

  std::string name_ = "test";
  char* arguments_[1] = {name_.data()};
  Trial trial_{1, arguments_};
  std::unique_ptr<Collectives> collectives_;
  LibTorchCheckpoints format_{trial_.context().parameters};
  TrainingState state_{trial_.context(), format_};
  ReplicaGroup group_{trial_.context(), *collectives_, state_, [] {}, [] {}};
  BatchPlanner batches_;
  StepMeter meter_{nullptr};
  OptimizerStep step_{trial_.context(), state_, group_, *collectives_, batches_, meter_};
};

TEST_F(OptimizerStepTest, StepsWithTheLastMicrobatch) {
  SteppedModel model;
  step_.AddModel(model.part(), model.steps(), {});
  Begin();
  step_.BeginMicrobatch();
  EXPECT_TRUE(step_.answer_due());
  EXPECT_EQ(step_.Backward(0, model.Loss()), Progress::kUnderWay);
  EXPECT_FALSE(step_.answer_due());
  EXPECT_FALSE(model.Changed());
  ASSERT_TRUE(step_.InLastMicrobatch());
  step_.BeginMicrobatch();
  EXPECT_EQ(step_.Backward(0, model.Loss()), Progress::kDone);
  EXPECT_TRUE(model.Changed());
  EXPECT_EQ(state_.position.step, 0);
  step_.Finish();
  EXPECT_EQ(state_.position.step, 1);
  EXPECT_EQ(state_.position.cursor, 8);
  EXPECT_GT(state_.position.progress, 0);
  EXPECT_FALSE(step_.plan());
}

TEST_F(OptimizerStepTest, IsDoneWhenAllModelsHaveStepped) {
  SteppedModel actor;
  SteppedModel critic;
  step_.AddModel(actor.part(), actor.steps(), {.name = "actor"});
  step_.AddModel(critic.part(), critic.steps(), {.name = "critic"});
  Begin();
  for (const Progress end : {Progress::kUnderWay, Progress::kDone}) {
    step_.BeginMicrobatch();
    EXPECT_EQ(step_.Backward(0, actor.Loss()), Progress::kUnderWay);
    EXPECT_TRUE(step_.answer_due());
    EXPECT_EQ(step_.Backward(1, critic.Loss()), end);
  }
  EXPECT_EQ(state_.position.models_stepped, 2);
  step_.Finish();
  EXPECT_EQ(state_.position.models_stepped, 0);
}

TEST_F(OptimizerStepTest, WhatAMicrobatchBringsAfterTheGroupWasLostIsIgnored) {
  SteppedModel model;
  step_.AddModel(model.part(), model.steps(), {});
  Begin();
  step_.BeginMicrobatch();
  step_.Drop(/*lost=*/true);
  EXPECT_FALSE(step_.plan());
  EXPECT_EQ(step_.Backward(0, model.Loss()), Progress::kUnderWay);
  EXPECT_FALSE(step_.answer_due());
  EXPECT_FALSE(model.Changed());
  EXPECT_EQ(state_.position.step, 0);
}

TEST_F(OptimizerStepTest, AProgramStepsItsOptimizerByItself) {
  SteppedModel model;
  step_.AddSteppedModel(model.part(), model.steps(), {});
  Begin();
  BeginPasses();
  model.Loss().backward();
  EXPECT_TRUE(step_.CloseModel(0));
  EXPECT_EQ(step_.StepModel(0), ModelOutcome::kAccumulated);
  EXPECT_EQ(step_.EndModel(), Progress::kUnderWay);
  BeginPasses();
  model.Loss().backward();
  EXPECT_TRUE(step_.CloseModel(0));
  EXPECT_EQ(step_.StepModel(0), ModelOutcome::kStepped);
  EXPECT_EQ(step_.EndModel(), Progress::kDone);
  EXPECT_TRUE(model.Changed());
  step_.Finish();
  EXPECT_EQ(state_.position.step, 1);
}

TEST_F(OptimizerStepTest, AStepThatTheProgramLeavesOutIsSkipped) {
  SteppedModel model;
  step_.AddSteppedModel(model.part(), model.steps(), {});
  Begin();
  testing::internal::CaptureStderr();
  for (const Progress end : {Progress::kUnderWay, Progress::kDone}) {
    BeginPasses();
    model.Loss().backward();
    EXPECT_TRUE(step_.LeaveOut());
    EXPECT_EQ(step_.EndPasses(), end);
  }
  step_.Finish();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("the step counts as skipped"),
            std::string::npos);
  EXPECT_FALSE(model.Changed());
  EXPECT_EQ(state_.position.step, 1);
  EXPECT_EQ(state_.position.skipped_steps, 1);
}

}  // namespace
}  // namespace espalier
