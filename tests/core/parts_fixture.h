#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tuner/core/estimates/compared_curves.h"
#include "tuner/core/estimates/promises.h"
#include "tuner/core/estimates/speeds.h"
#include "tuner/core/groups/groups.h"
#include "tuner/core/groups/joins.h"
#include "tuner/core/pool/checkpoint_copies.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/draws.h"
#include "tuner/core/trials/study_plugins.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// The parts of the core that the others are built on, for tests of one part at a time. It is 100 s,
// and there is a node of two slots.
class PartsFixture : public ::testing::Test {
 protected:
  static constexpr NodeId kNode{1};

  PartsFixture() {
    turn_.Begin(TimeFromSeconds(100));
    Node& node = pool_.nodes[kNode];
    node.id = kNode;
    node.name = "a";
    node.slots = 2;
    node.connected = true;
  }

  void Create(StudyId id, StudySpec spec) {
    turn_.Emit(StudyCreated{id, std::move(spec), turn_.now()});
  }
  // A trial of the pool that an elastic program trains on all slots of the node, which it has
  // reached a while ago.
  void Train(TrialId id, StudyId study) {
    turn_.Emit(TrialCreated{id, study, std::ssize(turn_.StudyAt(study).trials), {}, turn_.now()});
    turn_.Emit(TrialStateChanged{id, TrialState::kRunning, turn_.now(), "", std::nullopt, ""});
    Group& group = pool_.groups[id];
    group.target = {{kNode, 2}};
    group.elastic = true;
    for (const int slot : {0, 1}) {
      const ReplicaId replica(slot + 1);
      pool_.replicas.emplace(replica, Replica(replica, id, kNode, slot)).first->second.ready = true;
      group.members.push_back(replica);
    }
  }

  Turn turn_{TunerState{}, [this](const Change& change) {
               curves_.Observe(turn_.state(), change);
               pool_.Observe(change);
               promises_.Observe(change);
               plugins_.Observe(change);
               draws_.Observe(change);
               trials_.Observe(change);
               if (observe_) observe_(change);
             }};
  CoreOptions options_;
  PoolState pool_{turn_};
  PluginsOfStudies plugins_;
  Draws draws_{turn_, options_};
  CurvesOfStudies curves_;
  Speeds speeds_{turn_.state(), /*fit_aside=*/false};
  Promises promises_{turn_};
  CheckpointCopies copies_{turn_, pool_};
  Joins joins_{turn_, pool_};
  Groups groups_{turn_, pool_, options_, copies_, speeds_};
  RankReports ranks_{turn_};
  Trials trials_{turn_, pool_, groups_, ranks_, plugins_, curves_, promises_};
  std::function<void(const Change&)> observe_;  // of the part that is tested
};

}  // namespace espalier
