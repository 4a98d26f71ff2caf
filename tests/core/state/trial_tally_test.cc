#include "tuner/core/state/trial_tally.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/payments.h"
#include "tuner/core/state/slot_time.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {
namespace {

constexpr StudyId kTallied(1);
constexpr int kNodes = 3;

// ---- What a walk over the trials finds.

// A constraint on the figure "a", or one that clients have told.
bool BreaksByWalk(const Study& study, const Trial& trial) {
  if (study.spec.constraints.empty()) {
    const auto broken = trial.attributes.system.find("constraints:a");
    return broken != trial.attributes.system.end() && broken->second == "1";
  }
  double newest = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [step, figures] : trial.extra) newest = figures.at("a");
  return !trial.values.empty() && !(newest <= study.spec.constraints.front().bound);
}

TrialTally::Kept KeptByWalk(const TunerState& state, const Study& study) {
  TrialTally::Kept kept;
  state.ForEachTrial(study, [&](const Trial& trial) {
    const bool told_figure = study.spec.constraints.empty()
                                 ? trial.attributes.system.contains("constraints:a")
                                 : !trial.extra.empty();
    // One that has ended without the figure keeps to nothing.
    const bool never =
        !study.spec.constraints.empty() && Ended(trial.state) && !trial.values.empty();
    if (!told_figure && !never) return;
    ++(BreaksByWalk(study, trial) ? kept.breaks : kept.keep);
  });
  return kept;
}

std::optional<TrialTally::Best> BestByWalk(const TunerState& state, const Study& study) {
  if (study.spec.directions.size() != 1) return std::nullopt;
  for (const bool complete : {true, false}) {
    std::optional<TrialTally::Best> best;
    state.ForEachTrial(study, [&](const Trial& trial) {
      if ((trial.state == TrialState::kComplete) != complete) return;
      const std::optional<double> value = BestValue(trial, study.spec.direction());
      if (!value || !std::isfinite(*value)) return;
      if (BreaksByWalk(study, trial)) return;
      if (!best || Better(study.spec.direction(), *value, best->value)) {
        best = {trial.number, *value, complete};
      }
    });
    if (best) return best;
  }
  return std::nullopt;
}

double DoneByWalk(const TunerState& state, const Study& study) {
  const bool population = study.spec.population.on();
  double done = 0;
  double placed = 0;
  state.ForEachTrial(study, [&](const Trial& trial) {
    if (population && trial.state == TrialState::kPruned) return;
    placed += Ended(trial.state) || !trial.values.empty() || !trial.lineage->cloned() ? 1 : 0;
    if (Ended(trial.state)) {
      done += 1;
    } else if (study.spec.max_step > 0 && !trial.values.empty()) {
      done += std::clamp(
          static_cast<double>(trial.values.back().step) / static_cast<double>(study.spec.max_step),
          0.0, 1.0);
    }
  });
  if (!population) return done;
  return placed > 0 ? done / placed * static_cast<double>(study.spec.max_trials) : 0;
}

void ExpectAsWalked(const TunerState& state, Time now) {
  const Study& study = state.studies.at(kTallied);
  const TrialTally& tally = state.TallyOf(study);
  std::map<TrialState, std::int64_t> counts;
  bool in_group = false;
  bool at_work = false;
  double slot_s = 0;
  double paid = 0;
  std::map<std::string, TrialTally::Readers> readers;
  std::set<TrialTally::Failure> failures;
  state.ForEachTrial(study, [&](const Trial& trial) {
    ++counts[trial.state];
    in_group = in_group || trial.generation > 0;
    at_work = at_work || !trial.values.empty() || trial.state == TrialState::kComplete;
    slot_s += SlotSeconds(trial, now);
    for (const Parameter& parameter : trial.parameters) {
      if (trial.state != TrialState::kComplete) break;
      ++readers[parameter.name].complete;
      const bool unread = trial.attributes.system.contains(UnreadAttribute(parameter.name));
      readers[parameter.name].unread += unread ? 1 : 0;
    }
    for (const Payment& payment : PaymentsFor(state, trial, now)) paid += payment.cost;
    TrialTally::HeldTime held{};
    if (!trial.spans.empty()) held = {trial.spans.front().from, trial.spans.back().to};
    EXPECT_EQ(tally.held_times().at(static_cast<std::size_t>(trial.number)), held);
    if (trial.state == TrialState::kFail && !trial.cancelled)
      failures.insert({trial.ended, trial.id});
  });
  while (failures.size() > TrialTally::kFailuresKept) failures.erase(failures.begin());
  EXPECT_TRUE(std::equal(failures.begin(), failures.end(), tally.failures().begin(),
                         tally.failures().end()));
  for (const TrialState of : {TrialState::kWaiting, TrialState::kRunning, TrialState::kPaused,
                              TrialState::kComplete, TrialState::kPruned, TrialState::kFail}) {
    EXPECT_EQ(tally.count(of), counts[of]) << ToString(of);
  }
  EXPECT_EQ(tally.best(), BestByWalk(state, study));
  EXPECT_NEAR(tally.done(), DoneByWalk(state, study), 1e-9);
  EXPECT_EQ(tally.kept(), KeptByWalk(state, study));
  EXPECT_EQ(tally.readers(), readers);
  EXPECT_EQ(tally.any_in_group(), in_group);
  EXPECT_EQ(tally.any_at_work(), at_work);
  EXPECT_NEAR(SlotSeconds(state, study, now), slot_s, 1e-9 * (1 + slot_s));
  double told = 0;
  for (const Payment& payment : PaymentsFor(state, study, now)) told += payment.cost;
  EXPECT_NEAR(told, paid, 1e-9 * (1 + paid));
  TunerState anew = state;
  anew.Recount();
  EXPECT_TRUE(anew.tallies == state.tallies) << "what a restart would count";
}

// Changes of any kind that a tally counts, in any order that Apply takes.
class Changes {
 public:
  explicit Changes(std::uint64_t seed) : random_(seed) {
    StudySpec spec;
    spec.name = "s";
    spec.max_step = std::int64_t{10} * Draw(2);
    spec.directions = {Draw(2) > 0 ? Direction::kMaximize : Direction::kMinimize};
    if (Draw(8) == 0) spec.directions.push_back(Direction::kMinimize);
    if (Draw(3) == 0) spec.constraints = {{"a", false, 1}};
    spec.max_trials = 8;
    spec.population.interval = Draw(2);
    state.Apply(StudyCreated{kTallied, spec, now});
    for (int node = 1; node <= kNodes; ++node) {
      state.Apply(NodeRegistered{NodeId(node), absl::StrCat("n", node)});
    }
  }

  void Next() {
    now = After(now, static_cast<double>(Draw(1000)) / 8);
    const auto trials = std::ssize(state.studies.at(kTallied).trials);
    const int kind = Draw(8);
    if (trials == 0 || (kind == 0 && trials < 12)) {
      Parameters parameters = {{"x", 0.5}};
      if (Draw(2) == 0) parameters.push_back({"y", 0.5});
      state.Apply(TrialCreated{TrialId(trials + 1), kTallied, trials, parameters, now});
      if (trials > 0 && Draw(2) == 0) state.Apply(TrialCloned{TrialId(trials + 1), {Draw(2), 0}});
    } else if (kind == 1) {
      // The clock of another run of the service may be behind.
      const Time since = After(now, -static_cast<double>(Draw(3) * Draw(300)));
      NodeTerms terms;
      terms.since = since;
      terms.slots = 4;
      terms.price_per_hour = 1.0 + Draw(3);
      state.Apply(NodeTermsTold{NodeId(Draw(kNodes) + 1), terms});
    } else {
      Of(state.trials.at(TrialId(Draw(static_cast<int>(trials)) + 1)), kind);
    }
  }

  TunerState state;
  Time now = TimeFromSeconds(1000);

 private:
  int Draw(int below) { return static_cast<int>(random_.Below(static_cast<std::uint64_t>(below))); }
  double Value() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kNone[] = {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity};
    return Draw(6) == 0 ? kNone[Draw(3)] : static_cast<double>(Draw(6));
  }

  void Of(const Trial& trial, int kind) {
    if (kind == 2) {
      const auto to = static_cast<TrialState>(Draw(6));
      if (!MayFollow(trial.state, to, StateSource::kPool)) return;
      TrialStateChanged change{trial.id, to, now};
      if (Ended(to) && Draw(3) > 0) change.value = Value();
      state.Apply(change);
    } else if (kind == 3) {
      const auto to = static_cast<TrialState>(Draw(6));
      if (!MayFollow(trial.state, to, StateSource::kClient)) return;
      TrialTold change{};
      change.id = trial.id;
      change.state = to;
      if (Ended(to) && Draw(3) > 0) change.values = {Value()};
      state.Apply(change);
    } else if (kind == 4) {
      state.Apply(FinalValueReported{trial.id, Value()});
    } else if (kind == 5) {
      std::vector<Slot> slots;
      for (int slot = Draw(4); slot > 0; --slot) slots.push_back({NodeId(Draw(kNodes) + 1), slot});
      state.Apply(SlotsHeldChanged{trial.id, now, slots});
    } else if (kind == 6 && Draw(2) == 0) {
      state.Apply(
          TrialAttributeSet{trial.id, true, UnreadAttribute(Draw(2) == 0 ? "x" : "y"), "true"});
    } else if (kind == 6 && Draw(3) == 0) {
      state.Apply(TrialAttributeSet{trial.id, true, "constraints:a", Draw(2) == 0 ? "1" : "0"});
    } else if (kind == 6 && Draw(4) == 0) {
      state.Apply(GenerationAdvanced{trial.id, trial.generation + 1});
    } else if (kind == 6 && trial.lineage->awaited()) {
      state.Apply(TrialCloned{trial.id, {trial.lineage->parent, 0, Draw(100), "f"}});
    } else {
      ValueReported told{trial.id, {Step(), Value(), 0, now, 0}, {}, /*replace=*/true};
      if (Draw(2) == 0) told.extra = {{"a", Draw(4)}};
      state.Apply(told);
    }
  }

  // Clients of Optuna may give any.
  std::int64_t Step() {
    if (Draw(10) > 0) return Draw(15);
    return Draw(2) == 0 ? std::numeric_limits<std::int64_t>::min()
                        : std::numeric_limits<std::int64_t>::max();
  }

  Random random_;
};

TEST(TrialTally, KeepsTheNewestFailures) {
  TunerState state;
  StudySpec spec;
  spec.name = "s";
  state.Apply(StudyCreated{kTallied, spec, TimeFromSeconds(1)});
  constexpr int kFailed = 3 + static_cast<int>(TrialTally::kFailuresKept);
  for (int i = 1; i <= kFailed; ++i) {
    state.Apply(TrialCreated{TrialId(i), kTallied, i - 1, {}, TimeFromSeconds(i)});
    TrialStateChanged failed{TrialId(i), TrialState::kFail, TimeFromSeconds(i)};
    failed.cancelled = i == kFailed;
    state.Apply(failed);
  }
  // What is said of one that has dropped out, and of one that is there, brings neither back twice.
  for (const int i : {1, 10}) state.Apply(TrialAttributeSet{TrialId(i), false, "why", "1"});
  const auto& failures = state.tallies.at(kTallied).failures();
  EXPECT_EQ(failures.size(), TrialTally::kFailuresKept);
  EXPECT_EQ(failures.front().trial, TrialId(3));
  EXPECT_EQ(failures.back().trial, TrialId(kFailed - 1)) << "one that was cancelled is no failure";
  ExpectAsWalked(state, TimeFromSeconds(100));
}

TEST(TrialTally, SaysWhatAWalkWouldFindAfterEachChange) {
  int with_best = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Changes changes(seed);
    for (int i = 0; i < 150; ++i) {
      changes.Next();
      ExpectAsWalked(changes.state, changes.now);
      if (testing::Test::HasFailure()) return;
    }
    with_best += changes.state.tallies.at(kTallied).best() ? 1 : 0;
  }
  EXPECT_GT(with_best, 20) << "or nothing was compared";
}

TEST(TrialTally, IsGoneWithItsStudy) {
  Changes changes(1);
  changes.Next();
  const auto trials = std::ssize(changes.state.studies.at(kTallied).trials);
  changes.state.Apply(StudyDeleted{kTallied, kTallied, TrialId(trials)});
  EXPECT_TRUE(changes.state.tallies.empty());
}

}  // namespace
}  // namespace espalier
