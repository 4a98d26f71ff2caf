#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/core/core_fixture.h"

namespace espalier {

// A study whose trials are a population, compared at every second step.
class PopulationTest : public CoreTest {
 protected:
  StudySpec Population(std::int64_t members) {
    StudySpec spec = Spec(members);
    spec.max_slots = 1;
    spec.population.interval = 2;
    spec.population.parameters = {"x"};
    return spec;
  }
  void Begin(const StudySpec& spec, int slots) {
    Step(CreateStudy{spec, false});
    AgentHello hello{"node", slots, {}};
    hello.clones = true;
    node_ = Step(hello).node();
    TrainThoseThatStart();
  }
  void TrainThoseThatStart(bool save = true) {
    for (const StartReplicaCommand& start : std::vector(starts_)) {
      replicas_[start.trial.value] = start.replica;
      slots_[start.replica] = start.slot;
      Ready(start.replica);
      Form(regroups_);
      if (save) Save(start.trial.value, 10);
    }
  }
  void BeginUnsaved(const StudySpec& spec, int slots) {
    Step(CreateStudy{spec, false});
    Join(slots);
    TrainThoseThatStart(/*save=*/false);
  }
  // Without a look at what follows.
  void Hear(std::int64_t id, ReplicaMessage message) {
    core_.Handle(now_, FromReplica{replicas_.at(id), std::move(message)});
  }
  // After a restart of the service.
  AgentHello HelloOfAll() const {
    AgentHello hello{"node", static_cast<int>(replicas_.size()), {}};
    for (const auto& [id, replica] : replicas_) {
      hello.replicas.push_back({replica, TrialId(id), static_cast<int>(id) - 1, 1,
                                ReplicaReady{"host:1", {64, 64, 1, 64, true}, 10}});
    }
    return hello;
  }
  std::string LastReasonOf(std::int64_t id) {
    std::string reason;
    for (const Decision& decision : core_.state().studies.at(trial(id).study).decisions) {
      if (decision.trial_number == trial(id).number) reason = decision.reason;
    }
    return reason;
  }
  void Save(std::int64_t id, std::int64_t step) {
    const std::string path = absl::StrCat("/a/trial-", id, "/checkpoints/step-", step, ".pt");
    Step(FromReplica{replicas_.at(id), ReplicaCheckpoint{path, step}});
  }
  void Report(std::int64_t id, std::int64_t step, double value) {
    Step(FromReplica{replicas_.at(id), ReplicaReport{step, value}});
  }
  void Exit(std::int64_t id) { Step(ReplicaExited{replicas_.at(id), 0, 0, "", ""}); }
  // The clone's copy of its parent's checkpoint is made.
  void Bring(std::int64_t id) {
    CheckpointCopied copied{node_, TrialId(id), {}, "", 0};
    copied.what.step = 10;
    copied.what.name = "step-10.pt";
    copied.path = absl::StrCat("/a/trial-", id, "/checkpoints/step-10.pt");
    Step(copied);
  }
  std::int64_t Trials() const { return std::ssize(core_.state().trials); }

  std::map<std::int64_t, ReplicaId> replicas_;
  std::map<ReplicaId, int> slots_;
};

}  // namespace espalier
