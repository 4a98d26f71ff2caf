// What a trial was drawn from is in its record: the same is drawn again from that alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/core/core_fixture.h"
#include "tests/core/trials/draw_again.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kSpaceOfRecord[] = R"({"x": {"_type": "uniform", "_value": [0, 1]},
    "y": {"_type": "loguniform", "_value": [0.001, 1]},
    "n": {"_type": "choice", "_value": [{"_name": "a"},
      {"_name": "b", "p": {"_type": "uniform", "_value": [0, 1]}}]}})";

TrialDraw DrawOf(const Trial& trial) { return *ReadTrialDraw(*trial.draw); }

// How many of the study's trials were drawn; each is drawn again.
int ExpectDrawnAgain(const TunerState& state) {
  const Study& study = state.studies.begin()->second;
  const DrawAgain again(state, study);
  int drawn = 0;
  state.ForEachTrial(study, [&](const Trial& trial) {
    if (trial.draw->empty()) return;
    EXPECT_EQ(ToJson(again(trial)), ToJson(again.Recorded(trial)))
        << "trial " << trial.number << " was drawn from: " << *trial.draw;
    ++drawn;
  });
  return drawn;
}

// A study that is gone, whose good trials had such an x.
LikeStudy LikeOneGoodAt(double x) {
  LikeStudy like{.study = "gone", .ended = 40, .within = 40};
  for (int i = 0; i < 40; ++i) {
    const double off = 0.005 * (i + 1);
    like.trials.push_back({{{"x", i % 2 == 0 ? x - off : x + off}}, 1 - 0.04 * i});
  }
  return like;
}

// BusyClients that ask, tell, fall silent and come again, in an order that a seed decides, around a
// service that is killed now and then; draws are made aside, and take their time.
class BusyClients {
 public:
  explicit BusyClients(std::uint64_t seed) : random_(seed) {
    StudySpec spec;
    spec.name = "s";
    spec.kind = StudyKind::kByClients;
    spec.space = *SearchSpace::FromJson(kSpaceOfRecord);
    spec.sampler = {"tpe", {{"candidates", 1000}, {"startup_trials", 3}}};
    spec.seed = seed;
    spec.points = {{{"x", 0.25}}, {{"n", std::string("b")}, {"n/b/p", 0.5}}};
    if (seed == 3) spec.like = LikeOneGoodAt(0.75);
    Do(CreateStudy{spec, false});
  }

  void Run(int turns) {
    for (int i = 0; i < turns; ++i) Turn();
    while (!asked_.empty()) Answer();
  }

  const TunerState& state() const { return core_->state(); }
  int aside() const { return aside_; }
  int restarts() const { return restarts_; }

 private:
  void Do(const Event& event) {
    now_ = After(now_, 0.5);
    StepResult result = core_->Step(now_, event);
    for (const auto& draw : result.draws) asked_.push_back(draw);
  }
  void Answer() {
    const auto request = asked_.front();
    asked_.pop_front();
    ++aside_;
    Do(DrawMade{request->study, request->number,
                std::make_shared<const Drawn>(MakeDraw(*request, {}))});
  }
  TrialId AnyRunning() {
    std::vector<TrialId> running;
    for (const auto& [id, trial] : state().trials) {
      if (trial.state == TrialState::kRunning) running.push_back(id);
    }
    return running.empty() ? TrialId() : running[random_.Below(running.size())];
  }
  void Turn() {
    switch (random_.Below(12)) {
      case 0:
        return Do(EnqueueTrial{"s", {{"y", 0.01 + 0.9 * random_.Uniform()}}, {}, ""});
      case 1:
        return Do(AskTrial{"s", {{"n", std::string("b")}}, ""});
      case 2:
        core_ = std::make_unique<Core>(TunerState(state()), Options());
        asked_.clear();  // nobody will ever see what they came to
        ++restarts_;
        return;
      case 3:
      case 4:
      case 5:
        return Do(AskTrial{"s", {}, ""});
      case 6:
      case 7:
      case 8:
        if (!asked_.empty()) Answer();
        return;
      default:
        return Tell();
    }
  }
  void Tell() {
    const TrialId id = AnyRunning();
    if (!id) return;
    if (random_.Below(5) == 0) return Do(TellEnd{id, TrialState::kFail, {}});
    Do(TellEnd{id, TrialState::kComplete, {random_.Uniform()}});
  }

  static CoreOptions Options() {
    CoreOptions options;
    options.plan_aside = true;
    return options;
  }

  Random random_;
  Time now_{1'000'000};
  std::unique_ptr<Core> core_ = std::make_unique<Core>(TunerState{}, Options());
  std::deque<std::shared_ptr<const DrawRequest>> asked_;
  int aside_ = 0;
  int restarts_ = 0;
};

TEST(DrawRecord, AStudyIsDrawnAgainWhateverHappenedAroundItsDraws) {
  int drawn = 0, aside = 0, restarts = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    BusyClients clients(seed);
    clients.Run(120);
    drawn += ExpectDrawnAgain(clients.state());
    aside += clients.aside();
    restarts += clients.restarts();
  }
  EXPECT_GT(drawn, 60);
  EXPECT_GT(aside, 20);
  EXPECT_GT(restarts, 15);
}

class DrawRecordOfAPool : public CoreTest {
 protected:
  ReplicaId Train() {
    const ReplicaId replica = Ready(starts_.at(0).replica);
    Form(regroups_);
    return replica;
  }
  // The next trial reports its values from step 1 on; then it is held back, or has ended.
  void Run(const std::vector<double>& values, bool to_the_end) {
    const ReplicaId replica = Train();
    std::int64_t step = 0;
    for (const double value : values) Step(FromReplica{replica, ReplicaReport{++step, value, 0}});
    if (to_the_end) Step(FromReplica{replica, ReplicaFinished{values.back()}});
    Step(ReplicaExited{replica, 0, 0, "", ""});
  }
};

TEST_F(DrawRecordOfAPool, NamesWhoWasHeldBackAndWithWhichValue) {
  StudySpec spec = Spec(9);
  spec.space = *SearchSpace::FromJson(kSpaceOfRecord);
  spec.sampler = {"tpe", {{"startup_trials", 2}}};
  spec.pruner = {"asha_promote", {{"eta", 2}}};
  spec.max_slots = 1;
  spec.max_step = 9;
  Step(CreateStudy{spec, false});
  Join(1);
  Run({0.5, 0.4}, true);
  Run({0.9}, false);   // waits at its first rung
  Run({0.95}, false);  // and lets the better one go on
  while (trial(2).state == TrialState::kPaused && study().trials.size() < 7) Run({0.99}, false);
  ASSERT_EQ(starts_.at(0).trial, TrialId(2)) << "it was promoted";
  Run({0.9, 0.3, 0.2, 0.1}, true);
  EXPECT_THAT(DrawOf(trial(3)).held_back, ElementsAre(Pair(1, 1)));
  EXPECT_GT(trial(2).values.back().step, 1) << "its value has changed since";
  EXPECT_GE(ExpectDrawnAgain(core_.state()), 4);
}

TEST_F(DrawRecordOfAPool, NamesTrialsThatRunAndParametersThatWereGiven) {
  StudySpec spec = Spec(4);
  spec.space = *SearchSpace::FromJson(kSpaceOfRecord);
  spec.sampler = {"tpe", {}};
  spec.points = {{{"y", 0.5}}, {{"x", 0.5}, {"y", 0.25}, {"n", std::string("a")}}};
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  Join(4);
  ASSERT_EQ(study().trials.size(), 4U);
  EXPECT_THAT(DrawOf(trial(1)).given, ElementsAre(1));
  EXPECT_EQ(*Find(trial(1).parameters, "y"), ParameterValue(0.5));
  EXPECT_TRUE(trial(2).draw->empty()) << "nothing was drawn";
  EXPECT_EQ(ToJson(trial(2).parameters), R"({"x":0.5,"y":0.25,"n":"a"})");
  EXPECT_EQ(ToText(DrawOf(trial(3))), "2 running 0-1");
  EXPECT_EQ(ToText(DrawOf(trial(4))), "3 running 0-2");
  EXPECT_EQ(ExpectDrawnAgain(core_.state()), 3);
}

TEST_F(DrawRecordOfAPool, SaysThatASamplerThatLearnsNothingWasToldNothing) {
  Step(CreateStudy{Spec(2), false});
  Join(2);
  EXPECT_EQ(*trial(2).draw, "0");
  EXPECT_EQ(ExpectDrawnAgain(core_.state()), 2);
}

TEST_F(DrawRecordOfAPool, FixedParametersAreHeldWhileTheOthersAreSearched) {
  StudySpec spec = Spec(30);
  spec.space = *SearchSpace::FromJson(kSpaceOfRecord);
  spec.sampler = {"tpe", {{"startup_trials", 4}}};
  spec.fixed = {{"y", 0.125}, {"n", std::string("b")}};
  spec.points = {{{"x", 0.75}}};
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  Join(1);
  for (int i = 0; i < 29; ++i) {
    const double x = std::get<double>(*Find(trial(i + 1).parameters, "x"));
    Run({(x - 0.3) * (x - 0.3)}, true);
  }
  std::set<double> tried;
  core_.state().ForEachTrial(study(), [&](const Trial& of) {
    EXPECT_EQ(*Find(of.parameters, "y"), ParameterValue(0.125));
    EXPECT_EQ(*Find(of.parameters, "n"), ParameterValue(std::string("b")));
    EXPECT_NE(Find(of.parameters, "n/b/p"), nullptr);
    tried.insert(std::get<double>(*Find(of.parameters, "x")));
  });
  EXPECT_TRUE(tried.contains(0.75));
  EXPECT_EQ(tried.size(), study().trials.size());
  EXPECT_EQ(ExpectDrawnAgain(core_.state()), static_cast<int>(study().trials.size()));
}

TEST_F(DrawRecordOfAPool, APriorIsDrawnFromAgain) {
  StudySpec spec = Spec(12);
  spec.space = *SearchSpace::FromJson(kSpaceOfRecord);
  spec.sampler = {"tpe", {{"startup_trials", 4}}};
  spec.prior = {{"x", 0.75}, {"n", std::string("b"), 0.9}};
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  Join(1);
  EXPECT_EQ(*Find(trial(1).parameters, "x"), ParameterValue(0.75));
  EXPECT_EQ(*Find(trial(1).parameters, "n"), ParameterValue(std::string("b")));
  for (int i = 0; i < 11; ++i) {
    const double x = std::get<double>(*Find(trial(i + 1).parameters, "x"));
    Run({(x - 0.3) * (x - 0.3)}, true);
  }
  EXPECT_EQ(ExpectDrawnAgain(core_.state()), static_cast<int>(study().trials.size()));
}

TEST_F(DrawRecordOfAPool, TrialsOfAnotherStudyAreLearntFromAgain) {
  StudySpec spec = Spec(12);
  spec.space = *SearchSpace::FromJson(kSpaceOfRecord);
  spec.sampler = {"tpe", {}};
  spec.like = LikeOneGoodAt(0.75);
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  Join(1);
  double mean = 0;
  for (int i = 0; i < 12; ++i) {
    mean += std::get<double>(*Find(trial(i + 1).parameters, "x")) / 12;
    Run({0.5}, true);
  }
  EXPECT_NEAR(mean, 0.75, 0.15);
  EXPECT_EQ(ExpectDrawnAgain(core_.state()), static_cast<int>(study().trials.size()));
}

TEST_F(DrawRecordOfAPool, NamesTheSamplerThatAutoLeftATrialTo) {
  StudySpec spec = Spec(13);
  spec.space = *SearchSpace::FromJson(kSpaceOfRecord);
  spec.sampler = {"auto", {}};
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  Join(1);
  for (int i = 0; i < 12; ++i) {
    const double x = std::get<double>(*Find(trial(i + 1).parameters, "x"));
    Run({(x - 0.3) * (x - 0.3)}, true);
  }
  EXPECT_EQ(*trial(13).draw, "12 by gp");
  EXPECT_EQ(ExpectDrawnAgain(core_.state()), 13);
}

TEST(TrialDraw, IsKeptAsAText) {
  TrialDraw draw;
  draw.known = 128;
  for (const std::int64_t number : {3, 4, 5, 9}) Append(draw.running, number);
  draw.held_back = {{7, 81}};
  draw.left_out = {{10, 10}};
  draw.given = {0, 2};
  draw.by = "gp";
  const std::string text = "128 running 3-5,9 held_back 7@81 left_out 10 given 0,2 by gp";
  EXPECT_EQ(ToText(draw), text);
  EXPECT_EQ(*ReadTrialDraw(text), draw);
  EXPECT_EQ(*ReadTrialDraw("128 later 4"), (*ReadTrialDraw("128"))) << "what a later release adds";
  EXPECT_TRUE(Holds(draw.running, 4));
  EXPECT_FALSE(Holds(draw.running, 6));
  EXPECT_FALSE(Holds(draw.running, 10));
  EXPECT_FALSE(Holds(draw.running, 2));
  EXPECT_THAT(ReadTrialDraw("0")->running, IsEmpty());
  for (const char* wrong : {"", "x", "3 running", "3 running 5-4", "3 running 2,1", "3 given a"}) {
    EXPECT_FALSE(ReadTrialDraw(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace espalier
