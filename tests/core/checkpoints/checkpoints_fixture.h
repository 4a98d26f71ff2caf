#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/core/core_fixture.h"

namespace espalier {

// An elastic trial that writes checkpoints, on nodes that come and go.
class CheckpointsTest : public CoreTest {
 protected:
  NodeId Enter(const std::string& name, int slots, HeldCheckpoints held = {},
               const std::string& shared_folder = "") {
    AgentHello hello{name, slots, {}};
    hello.checkpoints = std::move(held);
    hello.shared_folder = shared_folder;
    const Reply reply = Step(hello);
    status_ = reply.status;
    return reply.node();
  }

  // An elastic trial on one slot of node a; b has room as well.
  void Train() {
    StudySpec spec = Spec(1);
    spec.max_slots = 1;
    Step(CreateStudy{spec, false});
    a_ = Enter("a", 1);
    replica_ = Ready(starts_.at(0).replica);
    Form(regroups_);
    b_ = Enter("b", 1);
  }

  // An elastic trial on node a, with a checkpoint, for which a second replica is started there.
  void TrainAndAskForAJoiner() {
    Step(CreateStudy{Spec(1), false});
    a_ = Enter("a", 2);
    replica_ = Ready(starts_.at(0).replica);
    Form(regroups_);
    Save(10);
    Wait(3);
  }

  void Save(std::int64_t step) {
    const std::string name = absl::StrCat("step-", step, ".pt");
    Step(FromReplica{replica_, ReplicaCheckpoint{"/a/" + name, step, name, Print(step)}});
  }
  static std::string Print(std::int64_t step) { return absl::StrCat("print-", step); }
  static CheckpointLabel Label(std::int64_t step) {
    return {step, absl::StrCat("step-", step, ".pt"), Print(step), {}, 0};
  }
  static HeldCheckpoint Held(std::int64_t step, bool fetched) {
    return {"s", 0, absl::StrCat("step-", step, ".pt"), Print(step), fetched};
  }
  void Copied(NodeId node, std::int64_t step, const std::string& error = "") {
    Step(CheckpointCopied{node, TrialId(1), Label(step), error, 100});
  }
  // Its lease runs out.
  void Lose(NodeId node) {
    Step(AgentGone{node});
    Wait(11);
  }
  std::vector<std::string> Reasons() {
    std::vector<std::string> reasons;
    for (const Decision& decision : study().decisions) reasons.push_back(decision.reason);
    return reasons;
  }

  NodeId a_, b_;
  ReplicaId replica_;
  absl::Status status_;
};

}  // namespace espalier
