#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/goodput/goodput.h"
#include "allocator/pool/allocation_figures.h"
#include "base/ids.h"

namespace espalier {

// A node and how many of its slots may be given out. Each node appears once in a pool.
struct NodeCapacity {
  NodeId id;
  int slots = 0;
  std::string name{};      // for reasons; empty: by its id
  std::string gpu_type{};  // slots of one node are alike; a trial holds slots of one type only
  bool draining = false;   // about to go: gets nothing new, and what is there should leave
  bool spot = false;       // may be taken away at short notice
  // Nodes of one pool that cannot all talk to one another are of different islands, and a trial
  // holds slots of one island only. See islands.h.
  int island = 0;
  // So many of its slots are worth anything to one trial, since the others are shares of the same
  // GPUs; 0: all.
  int most_of_one_trial = 0;
};

// What the slots of a trial have in common: their GPU type, and that their nodes can talk.
using SlotKind = std::pair<std::string, int>;  // gpu_type, island
inline SlotKind KindOf(const NodeCapacity& node) { return {node.gpu_type, node.island}; }

// Slots by node; every count is positive. Empty: none.
using Placement = std::map<NodeId, int>;

// A trial as a policy sees it.
struct Job {
  TrialId id;
  StudyId study;
  bool running = false;  // false: waiting or paused
  Placement current;     // also names slots that have been lost since, with their node
  int min_slots = 1;
  int max_slots = 1;                    // 1: cannot be resized (a plain command)
  int pinned_slots = 0;                 // >0: exactly this many, whatever min and max say
  std::vector<int> sizes{};             // ascending: no other numbers of slots; empty: all of them
  int most_on_node = 0;                 // so many of its slots may be on one node; 0: all
  bool undivided = false;               // what one node could hold is on one node
  std::optional<GoodputModel> goodput;  // none until the first fit
  // Models fitted on GPU types other than the one `goodput` speaks of, by NodeCapacity::gpu_type. A
  // type that is missing is assumed to be like `goodput`.
  std::map<std::string, GoodputModel> goodput_by_gpu_type{};
  bool fixed_batch = true;        // the global batch does not change with the replicas
  std::int64_t global_batch = 0;  // of fixed_batch; 0: unknown, the model's initial one
  int max_profiled_replicas = 1;
  double promise = 0.5;
  double work_left_s = 0;      // until its end if it ran on one slot from now on; 0: unknown
  double time_left_s = 0;      // until its study's deadline; 0: there is none
  double resize_cost_s = 0.1;  // training time lost by a resize
  double since_resize_s = 1e9;
  std::int64_t order = 0;  // of submission
  bool joining = false;    // a resize is under way: leave it alone
  std::string name{};      // for reasons, e.g. "trial 7"; empty: by its id
  // What has become of it so far.
  double age_s = 0;             // since it was submitted
  double held_s = 0;            // of which it held slots
  double attained_service = 0;  // slot-seconds held
  int resizes = 0;              // after its first placement
  std::optional<double> cost;   // its best value of the metric so far, less is better
  // What policies without elasticity, or without a fitted model, use.
  int requested_slots = 0;  // what its user would ask for; 0: min_slots
  double steps_left = 0;    // optimizer steps at its present batch; 0: unknown
  // Seconds of a step on k slots packed onto whole nodes, at [k - 1], where known beforehand (the
  // oracle of a simulation).
  std::shared_ptr<const std::vector<double>> known_step_s{};
};

// The names of a job and of a node in reasons, and a number of slots there: "1 slot", "2 slots".
std::string NameOf(const Job& job);
std::string NameOf(const NodeCapacity& node);
std::string SlotsText(int n);
// "2, 4 and 8"
std::string SizesText(const std::vector<int>& sizes);

struct Pool {
  std::vector<NodeCapacity> nodes;
  std::vector<Job> jobs;
  double now_s = 0;                    // only differences count
  std::map<StudyId, double> shares{};  // what a study may claim relative to others; 1 where missing
  // Where studies take turns (ShareAccount::uneven): slots that each has had less than its share
  // for as long as a trial takes; negative: more. Those that are missing come after the others.
  // Empty: there are no turns.
  std::map<StudyId, double> owed{};
};

// A new placement and why, in words and figures for the study's record. An empty placement means
// pause: the nodes that held it are gone or too small, and there is no room for its minimum.
struct AllocationDecision {
  TrialId trial;
  Placement placement;
  std::string reason;
  std::optional<AllocationFigures> figures{};  // none: the policy has no model
};

}  // namespace espalier
