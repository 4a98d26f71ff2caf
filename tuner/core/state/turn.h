#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tuner/core/state/step.h"

namespace espalier {

// What a part of the core may do within a step: read the durable state, change it, and say what
// follows from that. All parts share one turn, so that their changes come in one order. Durable
// state changes only by Emit. Only the part itself changes any other state that it holds, except
// for PoolState, which the parts that act on the pool share.
//
// A part calls the parts that were given to its constructor, and returns what happened to its
// caller. Its Observe(const Change&) is called for every change once it has been applied: it may
// forget or note what the change is about, and never emits, or the order of changes would depend on
// which parts observe.
class Turn {
 public:
  using Observer = std::function<void(const Change&)>;

  Turn(TunerState state, Observer observe)
      : state_(std::move(state)), observe_(std::move(observe)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // The moment of the step; never earlier than before.
  Time now() const { return now_; }
  const TunerState& state() const { return state_; }
  // These are for ids that the core itself holds: they abort where there is no such trial or study.
  const Trial& TrialAt(TrialId id) const;
  const Study& StudyAt(StudyId id) const;

  // Applies the change, which must be committed before anything else is done. Aborts where an
  // observer calls it.
  void Emit(Change change);
  // Writes a decision and its reason to the study's record; `number` -1: about no trial.
  void Decide(StudyId study, std::int64_t number, DecisionKind kind, int from, int to,
              std::string reason);
  void Decide(const Trial& trial, DecisionKind kind, int from, int to, std::string reason,
              std::optional<AllocationFigures> figures = std::nullopt);

  // To an agent, once the changes are committed.
  void Send(Command command) { result_.commands.push_back(std::move(command)); }
  // To the engine of the pool's nodes.
  void Request(NodeRequest request) { result_.node_requests.push_back(std::move(request)); }
  void TellJoined(const std::string& node) { result_.nodes_joined.push_back(node); }
  // To a planner beside the owner's thread.
  void RequestPlan(std::shared_ptr<const PlanRequest> request) {
    result_.plan = std::move(request);
  }

  // To whoever makes draws beside the owner's thread.
  void RequestDraw(std::shared_ptr<const DrawRequest> request) {
    result_.draws.push_back(std::move(request));
  }

  // To whoever answers for terminators beside the owner's thread.
  void Ask(std::shared_ptr<const TerminatorQuestion> question) {
    result_.questions.push_back(std::move(question));
  }

  // The answer to the event that is being handled.
  Reply& reply() { return result_.reply; }
  // An answer to the client that was told to wait in an earlier step, or in this one.
  void AnswerLate(const LaterReply& wait, Reply reply) {
    result_.late.insert_or_assign(wait, std::move(reply));
  }

  // Something happened that the scheduler should see: it looks at the pool when the step settles.
  void Wake() { awake_ = true; }
  // Something has changed that a plan should see soon, and that changes nothing by itself.
  void LookAgain() { look_again_ = true; }

  // ---- for the core itself, which leads from step to step
  void Begin(Time now) { now_ = std::max(now, now_); }
  // What the step has come to.
  StepResult Finish() { return std::exchange(result_, {}); }
  bool awake() const { return awake_; }
  void Rest() { awake_ = false; }
  bool TakeLookAgain() { return std::exchange(look_again_, false); }
  // See Core::FreeDropped.
  bool FreeDropped(std::size_t most) { return state_.dropped.Free(most); }

 private:
  TunerState state_;
  Observer observe_;
  Time now_;
  StepResult result_;
  bool awake_ = false;
  bool look_again_ = false;
  bool observing_ = false;  // an observer is being told of a change
};

}  // namespace espalier
