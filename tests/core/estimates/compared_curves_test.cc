#include "tuner/core/estimates/compared_curves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"

namespace espalier {
namespace {

constexpr StudyId kComparedStudy(1);

// A study of one state that changes at random, and its curves as kept from look to look.
class Course {
 public:
  Course(BatchMode mode, std::uint64_t seed) : random_(seed) {
    StudySpec spec;
    spec.name = "s";
    spec.batch_mode = mode;
    spec.other_metrics = {"size"};
    spec.directions.push_back(Direction::kMinimize);
    spec.constraints = {{"size", false, 0.5}};
    Apply(StudyCreated{kComparedStudy, spec, Time{1}});
  }

  void ChangeSomething() {
    const auto trials = static_cast<std::int64_t>(study().trials.size());
    if (trials == 0 || random_.Uniform() < 0.1) {
      Apply(TrialCreated{TrialId(trials + 1), kComparedStudy, trials, {}, Time{1}});
      Enter(TrialId(trials + 1), TrialState::kRunning);
      return;
    }
    const TrialId id(1 +
                     static_cast<std::int64_t>(random_.Below(static_cast<std::size_t>(trials))));
    if (state_.trials.at(id).state != TrialState::kRunning) return;
    if (random_.Uniform() < 0.05) {
      Enter(id, random_.Uniform() < 0.5 ? TrialState::kComplete : TrialState::kPruned);
    } else {
      Report(id);
    }
  }

  // Steps come out of order and batches differ, so that the unit of progress changes too.
  void Report(TrialId id) {
    double& progress = progress_[id];
    progress += 32 * (1 + static_cast<double>(random_.Below(4)));
    const std::int64_t step =
        state_.trials.at(id).values.empty() ? 1 : state_.trials.at(id).values.back().step + 1;
    std::map<std::string, double> extra;
    if (random_.Uniform() < 0.7) extra = {{"size", random_.Uniform()}};
    Apply(ValueReported{id, {step, random_.Uniform(), progress, Time{2}, 0}, std::move(extra)});
  }

  void Enter(TrialId id, TrialState state) {
    Apply(TrialStateChanged{id, state, Time{2}, "", std::nullopt, ""});
  }

  void ExpectAsIfLookedAtForTheFirstTime() {
    CurvesOfStudies fresh;
    const std::span<const Curve> kept = curves_.Of(state_, study());
    const std::span<const Curve> anew = fresh.Of(state_, study());
    ASSERT_EQ(kept.size(), anew.size());
    for (std::size_t n = 0; n < kept.size(); ++n) {
      EXPECT_EQ(kept[n].trial_number, static_cast<std::int64_t>(n));
      EXPECT_EQ(kept[n].ended, anew[n].ended);
      EXPECT_EQ(kept[n].complete, anew[n].complete);
      const auto points = [](const Curve& curve) {
        return std::vector<IntermediateValue>(curve.points.begin(), curve.points.end());
      };
      EXPECT_EQ(points(kept[n]), points(anew[n])) << "trial " << n;
      EXPECT_EQ(kept[n].breaks, anew[n].breaks);
      EXPECT_TRUE(std::ranges::equal(kept[n].others, anew[n].others)) << "trial " << n;
    }
  }

  std::size_t trials() const { return study().trials.size(); }

 private:
  void Apply(const Change& change) {
    state_.Apply(change);
    curves_.Observe(state_, change);
  }
  const Study& study() const { return state_.studies.at(kComparedStudy); }

  Random random_;
  TunerState state_;
  CurvesOfStudies curves_;
  std::map<TrialId, double> progress_;
};

class ComparedCurvesTest : public ::testing::TestWithParam<BatchMode> {};

TEST_P(ComparedCurvesTest, AreWhatTheyWouldBeIfNothingWereKept) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Course course(GetParam(), seed);
    for (int i = 0; i < 300; ++i) {
      course.ChangeSomething();
      // Several changes may come between two looks.
      if (i % 3 == 0) course.ExpectAsIfLookedAtForTheFirstTime();
    }
    EXPECT_GT(course.trials(), 5u);
    if (HasFailure()) return;
  }
}

TEST(CurvesOfStudies, ATrialThatEndedWithNanIsNotComplete) {
  TunerState state;
  StudySpec spec;
  spec.name = "s";
  state.Apply(StudyCreated{kComparedStudy, spec, Time{1}});
  for (const std::int64_t number : {0, 1}) {
    const TrialId id(number + 1);
    state.Apply(TrialCreated{id, kComparedStudy, number, {}, Time{1}});
    state.Apply(TrialStateChanged{id, TrialState::kRunning, Time{2}, "", std::nullopt, ""});
    state.Apply(ValueReported{id, {1, 0.01, 0, Time{2}, 0}});
    state.Apply(FinalValueReported{id, number == 0 ? std::nan("") : 0.5});
    state.Apply(TrialStateChanged{id, TrialState::kComplete, Time{3}, "", std::nullopt, ""});
  }
  CurvesOfStudies curves;
  const std::span<const Curve> seen = curves.Of(state, state.studies.at(kComparedStudy));
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen[0].ended);
  EXPECT_FALSE(seen[0].complete);
  EXPECT_TRUE(seen[1].complete);
}

INSTANTIATE_TEST_SUITE_P(Core, ComparedCurvesTest,
                         ::testing::Values(BatchMode::kFixed, BatchMode::kAdaptive),
                         [](const auto& mode) {
                           return mode.param == BatchMode::kFixed ? "Fixed" : "Adaptive";
                         });

}  // namespace
}  // namespace espalier
