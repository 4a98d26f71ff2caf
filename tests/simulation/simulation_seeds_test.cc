// Pools with every kind of fault, by seeds: a thousand of them take every path, and some of them
// are run under sanitizers as well, where they take several times as long.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>

#include "tests/simulation/simulated_pool.h"
#include "tests/simulation/simulation_checks.h"

namespace espalier {
namespace {

constexpr std::uint64_t kSeeds = ESPALIER_SIMULATED_SEEDS;
constexpr std::uint64_t kSeedsForEveryPath = 1000;

// Texts of decisions that the seeds below must lead to, each at least once.
constexpr const char* kSaid[] = {"hangs",
                                 "hung",
                                 "could not reach",
                                 "cannot reach node-",
                                 "replaced by",
                                 "faster without it",
                                 "steps at equal progress",
                                 "waits to come among",
                                 "was never promoted",
                                 "cannot be paused",
                                 "its client asked for",
                                 "given back by its client",
                                 "its client was silent",
                                 "make room for it",
                                 "slots that a client waits for",
                                 "node-1 was lost",
                                 "waits for node",
                                 "goes on from the older checkpoint",
                                 "had not taken over yet"};

// What must have gone wrong how often at the least: a fault that is not drawn proves nothing.
const std::map<std::string, int>& LeastFaults() {
  static const std::map<std::string, int> least = {{"replica killed", 2000},
                                                   {"rank 0 of several killed", 20},
                                                   {"another of several killed", 20},
                                                   {"program crashed", 100},
                                                   {"main thread hung", 20},
                                                   {"replica frozen", 100},
                                                   {"group cut off", 50},
                                                   {"nodes cut, refused", 3},
                                                   {"nodes cut, silent", 3},
                                                   {"nodes cut one way", 3},
                                                   {"slow slot", 50},
                                                   {"stream broken", 2000},
                                                   {"message doubled", 1000},
                                                   {"node lost", 200},
                                                   {"disk lost", 50},
                                                   {"checkpoints damaged", 20},
                                                   {"clone ordered", 100},
                                                   {"cloned", 50},
                                                   {"service crashed before the commit", 300},
                                                   {"service crashed after the commit", 300},
                                                   {"study stopped", 200},
                                                   {"ranks met", 500}};
  return least;
}

// What came of all seeds.
struct Outcome {
  std::int64_t steps = 0;
  std::int64_t restarts = 0;
  std::int64_t client_grants = 0;
  std::int64_t large_states = 0;
  std::map<std::string, int> said;
  std::map<std::string, int> met;
  SimulatedPool::CheckpointCounts checkpoints;

  void Add(const SimulatedPool& pool) {
    for (const char* text : kSaid) said[text] += CountReasons(pool.state(), text);
    for (const auto& [fault, count] : pool.met()) met[fault] += count;
    steps += pool.steps();
    restarts += pool.restarts();
    client_grants += pool.client_grants();
    large_states += pool.handovers().done;
    checkpoints.copies += pool.checkpoints().copies;
    checkpoints.fetched += pool.checkpoints().fetched;
    checkpoints.older += pool.checkpoints().older;
    checkpoints.dropped += pool.checkpoints().dropped;
    checkpoints.in_vain += pool.checkpoints().in_vain;
    checkpoints.damaged += pool.checkpoints().damaged;
  }
};

void ExpectEveryPathTaken(const Outcome& outcome) {
  for (const auto& [text, count] : outcome.said) {
    EXPECT_GT(count, 0) << "no decision says \"" << text << "\": its path was not taken";
  }
  EXPECT_GT(outcome.steps, 200'000);
  EXPECT_GT(outcome.client_grants, 1000);
  EXPECT_GT(outcome.checkpoints.copies, 1000);
  EXPECT_GT(outcome.checkpoints.fetched, 100);
  EXPECT_GT(outcome.checkpoints.older, 0);
  EXPECT_GT(outcome.checkpoints.dropped, 100);
  EXPECT_GT(outcome.checkpoints.in_vain, 0);
  EXPECT_GT(outcome.checkpoints.damaged, 10);
  EXPECT_GT(outcome.large_states, 0) << "few live through so many faults";
  EXPECT_GT(outcome.restarts, 500) << "the service must have crashed often for this to mean "
                                      "something";
}

void ExpectEveryFaultMet(const std::map<std::string, int>& met) {
  for (const auto& [fault, count] : met) {
    std::cout << fault << ": " << count << "\n";
    EXPECT_TRUE(LeastFaults().contains(fault)) << "\"" << fault << "\" has no least number";
  }
  for (const auto& [fault, least] : LeastFaults()) {
    EXPECT_GE(met.contains(fault) ? met.at(fault) : 0, least) << fault;
  }
}

// Long enough to be found slow, and grown beyond two replicas.
bool HasLongTrials(std::uint64_t seed) { return seed % 10 == 0; }

// Every kind of fault, as often as is drawn.
Faults DrawFaults(std::uint64_t seed, Random& shape) {
  const bool long_trials = HasLongTrials(seed);
  Faults faults{0.02 * shape.Uniform(),  0.02 * shape.Uniform(),  0.003 * shape.Uniform(),
                0.01 * shape.Uniform(),  0.05 * shape.Uniform(),  0.002 * shape.Uniform(),
                0.005 * shape.Uniform(), 0.005 * shape.Uniform(), 0.001 * shape.Uniform(),
                0.2 * shape.Uniform(),   long_trials ? 0.3 : 0,   long_trials};
  if (seed % 2 == 0) faults.client = 0.1;
  if (seed % 5 == 3) faults.clone = 0.02;
  if (seed % 7 == 0) {
    faults.large_state = 0.3;
    faults.stalled_state = 0.2;
  }
  if (seed % 3 != 0) faults.cut_nodes = 0.1 * shape.Uniform();
  if (seed % 2 == 1) faults.lose_disk = 0.5;
  if (seed % 4 == 1) faults.together = 0.5;
  if (seed % 4 == 2) faults.damage = 0.003;
  return faults;
}

void CreateStudies(SimulatedPool& pool, std::uint64_t seed, int nodes, int slots_per_node) {
  const bool long_trials = HasLongTrials(seed);
  const int slots = nodes * slots_per_node;  // while nothing is lost
  const BatchMode mode = seed % 5 == 0 ? BatchMode::kAdaptive : BatchMode::kFixed;
  const bool over_nodes = seed % 8 == 6 && nodes > 1 && !long_trials;
  StudySpec first = pool.MakeStudy("a", !over_nodes && (seed % 4 != 0 || long_trials), mode);
  if (over_nodes) {
    first.launch = {"ranks"};
    first.min_slots = slots_per_node + 1;
  }
  // Trials that begin with a process that has several slots, elastic ones and others.
  if (seed % 8 == 3 || seed % 8 == 4) first.min_slots = std::min(2, slots);
  if (seed % 8 == 4) {
    // Plain programs, which are started again for another size.
    first.resize_by_restart = true;
  } else if (seed % 8 == 5) {
    first.slot_sizes = {1, 3, 4};
    first.max_slots = 4;
  }
  if (seed % 3 == 1) first.pruner = {"asha_promote", {{"eta", 2}}};
  if (long_trials) {
    first.pruner = {"none", {}};
    first.max_trials = 5;
  }
  while (pool.state().studies.empty()) {
    pool.Client(CreateStudy{first, true});
  }
  if (seed % 3 == 0) pool.Client(CreateStudy{pool.MakeStudy("b", true), true});
}

// Each seed is a pool of its own with every kind of fault; then the faults stop, and what was
// started must come to its end.
TEST(SimulationWithFaults, EverySeedComesToItsEnd) {
  Outcome outcome;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random shape(seed);
    const Faults faults = DrawFaults(seed, shape);
    const int nodes = 1 + static_cast<int>(shape.Below(3));
    const int slots = 1 + static_cast<int>(shape.Below(4));
    SimulatedPool pool(seed, nodes, slots, faults, HasLongTrials(seed) ? 80 : 9);
    CreateStudies(pool, seed, nodes, slots);
    pool.Run(40);
    pool.StopFaults();
    pool.Run(2000);
    ExpectAllEnded(pool, seed);
    if (::testing::Test::HasFailure()) break;
    outcome.Add(pool);
  }
  if (kSeeds < kSeedsForEveryPath) return;
  ExpectEveryFaultMet(outcome.met);
  ExpectEveryPathTaken(outcome);
}

}  // namespace
}  // namespace espalier
