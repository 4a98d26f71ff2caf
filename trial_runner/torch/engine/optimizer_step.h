#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trial_runner/collectives/collectives.h"
#include "trial_runner/elastic/batch_planner.h"
#include "trial_runner/elastic/step_schedule.h"
#include "trial_runner/torch/engine/replica_check.h"
#include "trial_runner/torch/engine/step_meter.h"
#include "trial_runner/torch/engine/trained_model.h"
#include "trial_runner/torch/engine/training_state.h"
#include "trial_runner/torch/group/replica_group.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {

// The optimizer step that this replica is in, over the microbatches of its plan and all models of
// the trial: their gradients are summed over the replicas, each model's optimizer steps, and the
// shared position moves on at the step's end.
//
// A step is taken by all members or by none: what one of them leaves out, all leave out. A member
// that leaves it out before the step's gradients are summed says so with them. One that does so
// afterwards says it with the next step's, of which nothing is counted then: all members go on from
// its state.
//
// Random numbers are each member's own from a microbatch's begin to the backward pass before the
// optimizer's step (those of dropout, or of what is done with the samples). From there to the next
// step all members draw the same, and what is decided by them is decided alike.
//
// It does not leave the group. Where a collective fails, or the group is abandoned, it says so; the
// caller then drops the step and regroups, and what the program still brings of the microbatch is
// ignored. What is referred to must outlive it. Use it from the thread that trains; a mistake in
// its use ends the program.
class OptimizerStep {
 public:
  OptimizerStep(TrialContext& trial, TrainingState& state, ReplicaGroup& group,
                Collectives& collectives, BatchPlanner& batches, StepMeter& meter)
      : trial_(trial),
        state_(state),
        group_(group),
        collectives_(collectives),
        batches_(batches),
        meter_(meter) {}

  // Before the group is joined: returns the model's number, from 0.
  std::size_t AddModel(std::unique_ptr<ModelPart> model, std::unique_ptr<OptimizerPart> optimizer,
                       const DataParallelOptions& options);
  // The same for a program that runs backward and steps the optimizer itself, see OpenPasses.
  std::size_t AddSteppedModel(std::unique_ptr<ModelPart> model,
                              std::unique_ptr<OptimizerPart> optimizer,
                              const DataParallelOptions& options);
  const std::vector<std::unique_ptr<TrainedModel>>& models() const { return models_; }
  // Of the first model, for the next step.
  double LearningRate() const;
  // The group has changed, or its state has.
  void StartGroup();
  void DropGradients();
  void PrepareGradients();
  // The next step's gradients are not to be compared with the last one's.
  void DropPrevious() {
    for (const auto& model : models_) model->DropPrevious();
  }

  // See AdaptiveDataParallel, and TrainingEngine for RehearsePasses.
  void Rehearse(const std::function<void()>& microbatch);
  void RehearsePasses(const std::function<void()>& microbatch);
  bool rehearsing() const { return rehearsing_; }
  bool rehearsed() const { return rehearsed_; }

  // ---- the step
  void Begin(StepPlan plan);
  const std::optional<StepPlan>& plan() const { return plan_; }  // none: no step is under way
  void ClearPlan() { plan_.reset(); }
  std::size_t next_microbatch() const { return next_microbatch_; }
  bool InLastMicrobatch() const { return next_microbatch_ + 1 == plan_->microbatches.size(); }
  // All models' microbatches have come to their end: the position is past the step.
  void Finish();
  // That a newer generation is announced is known to all members, as the step has shown.
  bool all_know() const { return all_know_; }
  // The group is left: the step is given up. `lost`: it is left because it is broken, and
  // collectives that were begun may still write.
  void Drop(bool lost);
  // Accounts for the last step, of which a device may only now know whether it was skipped.
  void Settle();
  // Some members' programs have left out a step that those of others have not, and all have left it
  // out then: what these have done since is to be that of those. False from then on.
  bool TakeParted() { return std::exchange(parted_, false); }
  // Beside kGroupLost and the like: the group is whole, but some members have left out the step
  // before, which others have taken.
  bool disagreed() const { return disagreed_; }
  // Has all members compare all that they should have alike, as before a checkpoint; the trial
  // fails where they do not. Ends with the group's own error.
  absl::Status CompareReplicas();
  // The same of buffers, before rank 0's are shared: one that has changed on some members and on
  // others not since they last had the same.
  absl::Status CompareBuffers();
  void KeepBuffers();  // all have the same now
  // All members do so at one place, where some of them may have been given another state.
  void CompareAnew() { check_.StartGroup(); }
  // From here on all members draw the same random numbers, until a step begins.
  void DrawAlike();
  // The seed with which they do so, for other generators; once each time.
  std::optional<std::uint64_t> TakeSeedOfAll() { return std::exchange(seed_of_all_, {}); }
  // Ends the trial after too many skipped steps in a row.
  void FailAfterSkippedSteps();

  // ---- its microbatches
  enum class Progress {
    kUnderWay,
    kDone,       // the step's last microbatch has come to its end: Finish is due
    kGroupLost,  // what the microbatch brought is not counted: Drop is due
  };
  void BeginMicrobatch();
  // BeginMicrobatch was called, and not all models have had their part.
  bool answer_due() const { return answer_due_; }
  // Runs backward for a model; with the step's last loss its optimizer steps. `loss`: the mean over
  // the microbatch.
  Progress Backward(std::size_t model, const at::Tensor& loss);

  // ---- microbatches in parts, for programs that run backward and step optimizers themselves
  // After BeginMicrobatch: gradients that come in from here on belong to the microbatch. When a
  // backward ends that has brought gradients of a model, they are reduced in a step's last
  // microbatch, and are the step's; those of further backward passes are added to them.
  void OpenPasses();
  // A backward pass has ended within which others were run: see GradientBuckets::AtBackwardsEnd.
  void EndBackwards();
  // Whether gradients of the model that backward brings now are summed later.
  bool DefersHooks(std::size_t model) const;
  // While on, what backward brings is kept for a later backward of the same microbatch, with which
  // it is reduced.
  void HoldGradients(bool on);
  // The program zeroes the gradients of these parameters, numbered as the model's optimizer has
  // them, less those that are not trained: what this microbatch has brought of them is dropped. As
  // every replica does so, nothing is reduced for it.
  void ZeroGradients(std::size_t model, const std::vector<std::size_t>& parameters);
  // The program is about to step the model's optimizer: reduces what is not reduced yet. False if
  // the group was lost; then Drop comes before StepModel.
  bool CloseModel(std::size_t model);
  enum class ModelOutcome {
    kStepped,
    kSkipped,      // not finite: model and optimizer stay as they are
    kAccumulated,  // the step has more microbatches
    kDropped,      // the group was lost, and so is what this microbatch brought
    kLeftOut,      // another member leaves the step out: model and optimizer stay as they are
  };
  // Steps the optimizer through OptimizerPart::Step, if it is to be stepped. `loss_scale`: by which
  // the program had multiplied the losses of the step's backward passes.
  ModelOutcome StepModel(std::size_t model, double loss_scale = 1);
  // The same where the program has found that its gradients are not finite: nothing is stepped.
  ModelOutcome PassOverModel(std::size_t model);
  // After it: whether that was the last model, and the step's last microbatch.
  Progress EndModel();
  // The program does not want a microbatch of the step under way, though maybe backward has run.
  // Before the step's last one has come.
  void LeaveOutMicrobatch();
  // The program has come to the end of its microbatch, maybe without stepping all optimizers: what
  // it has left out is skipped. False if the group was lost; then Drop comes before EndPasses.
  bool LeaveOut();
  Progress EndPasses();

  // See TrainingEngine.
  bool SumsOverStep() const;
  at::Tensor SumOverStep(const at::Tensor& own, bool weighted);

 private:
  // Of a model: what its pass of this microbatch has come to, where the program steps it itself.
  enum class PassState { kOpen, kHeld, kClosed };

  void LeaveNoTraceOf(const std::function<void()>& rehearsal);
  // Whether gradients of the model count now: not if it has made this step in a former group.
  bool Collects(std::size_t model) const;
  bool Holds(std::size_t model) const;  // what backward brings of its gradients now
  void EndBackward(std::size_t model);
  void BeginFurtherBackward(std::size_t model);
  void ReduceHeld(std::size_t model);
  bool AgreeWithoutModels();
  Progress EndMicrobatch();
  bool ReduceModel(std::size_t model);
  bool IsLeftOut(std::size_t model) const;
  bool Parts(std::size_t model) const;
  void ApplyModel(std::size_t model, double loss_scale = 1);
  void PassOver(std::size_t model);
  void EndPartOfModel();
  void LeaveOutModel(std::size_t model);
  void FillTail(std::size_t model);
  void DrawOwn();
  void DrawAlikeInStep();
  std::vector<std::string> ChangedBuffers() const;
  void CountCheck();  // which has found no difference
  void NoteChangedBuffers();
  // `changed`: on which ranks, by name. Whether the buffer's module keeps what each replica sees.
  bool IsObserved(const std::string& buffer,
                  const std::map<std::string, std::vector<std::size_t>>& changed);
  absl::Status FailWhereUnlike();
  [[noreturn]] void FailAsUnlike(const std::string& difference);
  absl::StatusOr<std::string> FindDifference();  // empty: there is none
  void TakeProposal(const TrainedModel& model);
  void MeasureStep();
  void FailAfterSkippedSteps(const TrainedModel& model, const ModelPosition& position);
  TrainedModel::StepFacts Facts() const;

  TrialContext& trial_;
  TrainingState& state_;
  ReplicaGroup& group_;
  Collectives& collectives_;
  BatchPlanner& batches_;
  StepMeter& meter_;
  std::vector<std::unique_ptr<TrainedModel>> models_;

  std::optional<StepPlan> plan_;
  std::size_t next_microbatch_ = 0;
  double inverse_size_ = 0;  // summed over the microbatches so far, on this replica
  bool all_know_ = false;
  bool skipped_ = false;  // some model's gradients were not finite
  double last_gain_ = 0;  // what the last step that was taken added to progress

  // The microbatch under way.
  std::size_t next_model_ = 0;  // whose part is due
  bool answer_due_ = false;
  bool dropped_ = false;  // the group was lost: what this microbatch still brings is ignored
  bool broken_ = false;   // the group was lost in a pass, and is still to be left
  bool rehearsed_ = false;
  bool rehearsing_ = false;  // what a microbatch brings is to leave no trace
  std::vector<PassState> passes_;
  bool hold_gradients_ = false;
  bool unstepped_said_ = false;

  // Steps that are left out.
  bool program_steps_ = false;          // the program runs backward and steps the optimizers itself
  std::optional<std::size_t> leaving_;  // the model whose step this member is leaving out
  bool left_out_part_ = false;  // ... has left out a microbatch before the last one of the step
  bool left_late_ = false;      // this member has left out the last step, after its sums
  bool parted_ = false;
  bool disagreed_ = false;

  ReplicaCheck check_{models_, ReplicaCheck::ModeOfEnvironment()};
  bool unlike_said_ = false;

  bool own_draws_ = false;
  std::optional<std::uint64_t> seed_of_all_;
  // By model: backward passes of this microbatch, and of the last one that was a step's last.
  std::vector<int> backwards_;
  std::vector<int> usual_backwards_;
  // By model: the sums of this step have told that some member leaves it out. That one takes no
  // part in what further backward passes bring.
  std::vector<bool> known_left_out_;
};

}  // namespace espalier
