#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "allocator/goodput/goodput.h"
#include "allocator/pool/pool.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/rank_blame.h"
#include "tuner/core/pool/replica_table.h"
#include "tuner/core/pool/stragglers.h"
#include "tuner/core/state/event.h"
#include "tuner/messages/replica_messages.h"

namespace espalier {

// What is known of a trial that has, or is about to have, replicas. Not durable.
struct Group {
  Placement target;                // what the allocator wants it to hold
  std::vector<ReplicaId> members;  // of the newest generation, by rank
  bool forming = false;            // the newest generation is not complete yet
  std::set<ReplicaId> awaited;     // members that have not reported it
  Time moved_at;                   // when it last got on, while it forms
  int form_timeouts = 0;           // in a row
  int replicas_before = 0;
  bool after_loss = false;
  ReplicaRegrouped longest_pause;  // reported of the forming generation
  std::string transport;           // of gradients on GPUs, as recorded last
  std::string not_rehearsed;       // as the replica said that joined last
  bool elastic = false;
  // A plain program that is started again on other slots, until it is further than it was.
  struct SizeRestart {
    int from_slots = 0;
    std::int64_t last_step = 0;                // of its last value before it ended
    Time last_at{};                            // when it told that; zero: it has not ended yet
    double step_s = 0;                         // that a step took then; 0: unknown
    std::optional<std::int64_t> again_from{};  // the first of the steps that it has done again
  };
  std::optional<SizeRestart> restart;
  // Ranks of a launcher that are on several nodes: one replica on each, by their ranks.
  struct OverNodes {
    // How the ranks of a replica have ended. What is told of the trial is that of one of them.
    struct End {
      Replica replica;
      ReplicaExited exit;
    };
    std::vector<ReplicaId> replicas;
    std::map<ReplicaId, RankEnd> failures{};  // of those with a rank that failed by itself
    // The first rank of each that had ended with 0 by itself.
    struct Left {
      int rank = 0;
      RankEnd end;
    };
    std::map<ReplicaId, Left> left{};
    std::map<ReplicaId, End> ends{};
    ReplicaId early{};        // has ended well, and others ran on for too long; 0: none
    std::string lost_with{};  // the node that was lost; empty: none
  };
  std::optional<OverNodes> over_nodes;
  std::optional<Time> waits_for_slots;  // since when its process trains on until they are free
  int values_told = 0;  // by its program, which is plain, since it started; steps done again aside
  bool pausing = false;
  std::string pause_reason;
  bool moved = false;          // those that had trained have left to replicas that are untried
  std::optional<Time> ending;  // a member ended well; the others are expected to follow
  bool untried_ended = false;  // with `ending`: it was untried
  Time last_resize;
  BatchBounds batch;
  std::int64_t total_steps = 0;
  GradientNoise noise;
  std::optional<ReplicaProgress> progress;
  double sync_share = 0;
  double step_time_s = 0;  // mean over the last progress
  StragglerDetector stragglers;
  ReplicaId replaced;              // a straggler that leaves when its successor is ready; 0: none
  std::set<ReplicaId> stuck;       // members of the newest generation that wait for the others
  std::optional<Time> stuck_ends;  // a member that has not said so by then hangs
  int stuck_in_a_row = 0;          // generations in which all members said so
  // What each member has found, of those that found others out of reach.
  std::map<ReplicaId, std::vector<ReplicaContact>> contacts;
  std::optional<Time> contacts_end;  // it is decided then which members go on

  // Whether time alone may change something about it.
  bool timed() const { return forming || ending || stuck_ends || contacts_end; }
};

}  // namespace espalier
