#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tuner/core/core.h"

namespace espalier {

// A core with one node, and what its last step asked for.
class CoreTest : public ::testing::Test {
 protected:
  explicit CoreTest(const CoreOptions& options = {}) : core_(TunerState{}, options) {}

  StudySpec Spec(std::int64_t trials) {
    StudySpec spec;
    spec.name = "s";
    spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
    spec.command = {"program"};
    spec.max_trials = trials;
    spec.sampler = {"random", {}};
    return spec;
  }
  // Trials that keep a latency_ms of 20 at the most.
  StudySpec Within20(std::int64_t trials) {
    StudySpec spec = Spec(trials);
    spec.metric = "loss";
    spec.constraints = {{"latency_ms", false, 20}};
    return spec;
  }
  // Of two metrics, a high accuracy and a low latency_ms.
  StudySpec Two(std::int64_t trials) {
    StudySpec spec = Spec(trials);
    spec.metric = "accuracy";
    spec.other_metrics = {"latency_ms"};
    spec.directions = {Direction::kMaximize, Direction::kMinimize};
    return spec;
  }
  // Why it is; empty: it is not, and the study is there.
  std::string Refused(const StudySpec& spec) {
    return std::string(Step(CreateStudy{spec, false}).status.message());
  }

  Reply Step(const Event& event) {
    now_ = After(now_, 0.01);
    StepResult result = core_.Step(now_, event);
    starts_.clear();
    regroups_.clear();
    stops_.clear();
    copies_.clear();
    drops_.clear();
    meets_.clear();
    node_requests_ = result.node_requests;
    for (const Command& command : result.commands) {
      if (const auto* c = std::get_if<StartReplicaCommand>(&command)) starts_.push_back(*c);
      if (const auto* c = std::get_if<RegroupCommand>(&command)) regroups_.push_back(*c);
      if (const auto* c = std::get_if<StopReplicaCommand>(&command)) stops_.push_back(*c);
      if (const auto* c = std::get_if<CopyCheckpointCommand>(&command)) copies_.push_back(*c);
      if (const auto* c = std::get_if<DropCheckpointsCommand>(&command)) drops_.push_back(*c);
      if (const auto* c = std::get_if<RanksMeetCommand>(&command)) meets_.push_back(*c);
    }
    return result.reply;
  }

  void Wait(double seconds) {
    now_ = After(now_, seconds);
    Step(Tick{});
  }

  void Join(int slots) { node_ = Join("node", slots); }
  NodeId Join(const std::string& name, int slots) {
    return Step(AgentHello{name, slots, {}}).node();
  }

  ReplicaId Ready(ReplicaId replica) {
    Step(FromReplica{
        replica, ReplicaReady{"host:" + std::to_string(replica.value), {64, 64, 1, 64, true}, 10}});
    return replica;
  }

  void Form(const std::vector<RegroupCommand>& regroups) {
    for (const Member& member : std::vector(regroups.front().membership.members)) {
      Step(FromReplica{member.replica,
                       ReplicaRegrouped{regroups.front().membership.generation, 0, 0.01}});
    }
  }

  void Report(ReplicaId replica, std::int64_t step, double value,
              std::map<std::string, double> extra = {}) {
    Step(FromReplica{replica, ReplicaReport{step, value, 0, std::move(extra)}});
  }

  void TellProgress(ReplicaId from, std::int64_t step, double epoch) {
    ReplicaProgress progress;
    progress.generation = trial().generation;
    progress.step = step;
    progress.epoch = epoch;
    progress.global_batch_size = 64;
    Step(FromReplica{from, progress});
  }

  // The group trains for so long and once through the data, as its first member says.
  void TrainOn(ReplicaId first, double seconds) {
    TellProgress(first, 10, 1);
    now_ = After(now_, seconds);
    TellProgress(first, 20, 2);
  }

  // One elastic trial alone on two slots, trained by both.
  std::vector<ReplicaId> TwoReplicas() { return TwoReplicas(Spec(1)); }
  std::vector<ReplicaId> TwoReplicas(const StudySpec& spec, int slots = 2) {
    Step(CreateStudy{spec, false});
    Join(slots);
    const ReplicaId first = Ready(starts_.at(0).replica);
    Form(regroups_);
    Wait(3);
    const ReplicaId second = starts_.at(0).replica;
    Ready(second);
    Form(regroups_);
    return {first, second};
  }

  const Trial& trial(std::int64_t id = 1) { return core_.state().trials.at(TrialId(id)); }
  const Study& study() { return core_.state().studies.begin()->second; }

  Time now_{1'000'000};
  Core core_;
  NodeId node_;
  std::vector<StartReplicaCommand> starts_;
  std::vector<RegroupCommand> regroups_;
  std::vector<StopReplicaCommand> stops_;
  std::vector<CopyCheckpointCommand> copies_;
  std::vector<DropCheckpointsCommand> drops_;
  std::vector<RanksMeetCommand> meets_;
  std::vector<NodeRequest> node_requests_;
};

}  // namespace espalier
