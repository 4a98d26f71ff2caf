#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "search_spaces/formats/optuna/distribution.h"
#include "tests/core/core_fixture.h"
#include "tuner/core/clients/request_keys.h"

namespace espalier {
namespace {

using testing::HasSubstr;

constexpr char kSpace[] = R"({"x": {"_type": "uniform", "_value": [0, 1]},
                              "kind": {"_type": "choice", "_value": ["a", "b"]},
                              "n": {"_type": "randint", "_value": [1, 9]}})";

// A core with one study whose clients ask for their trials.
class Asking : public CoreTest {
 protected:
  void Create(StudySpec spec) {
    const Reply reply = Step(CreateStudy{std::move(spec), false});
    ASSERT_TRUE(reply.status.ok()) << reply.status;
  }
  static StudySpec AskSpec(const char* space = kSpace) {
    StudySpec spec;
    spec.name = "asked";
    spec.kind = StudyKind::kByClients;
    spec.space = *SearchSpace::FromJson(space);
    spec.sampler = {"random", {}};
    return spec;
  }

  Reply Ask(const Parameters& fixed = {}, const std::string& key = {}) {
    return Step(AskTrial{"asked", fixed, key});
  }
  Reply Enqueue(const Parameters& fixed, const std::string& key = {}) {
    return Step(EnqueueTrial{"asked", fixed, {}, key});
  }
  const Trial& At(TrialId id) { return core_.state().trials.at(id); }
  // By name, as the trial's client gets them.
  std::map<std::string, ParameterValue> Of(TrialId id) {
    std::map<std::string, ParameterValue> values;
    for (const SuggestedValue& s : At(id).suggested) {
      const Suggestion& from = study().suggestions.at(static_cast<std::size_t>(s.suggestion));
      values[from.name] = OptunaValue(*ParseOptunaDistribution(from.distribution), s.value);
    }
    return values;
  }
  Parameters ParametersOf(TrialId id) {
    Parameters parameters;
    for (const auto& [name, value] : Of(id)) parameters.push_back({name, value});
    return parameters;
  }
};

TEST_F(Asking, PointsAreTriedFirstAndInOrder) {
  StudySpec spec = AskSpec();
  spec.points = {{{"x", 0.25}}, {{"x", 0.5}, {"kind", std::string("b")}, {"n", std::int64_t{3}}}};
  spec.max_trials = 3;
  Create(spec);
  EXPECT_EQ(study().trials.size(), 2U) << "whoever draws by itself finds them too";
  const TrialId first = Ask().trial();
  EXPECT_EQ(Of(first).at("x"), ParameterValue(0.25));
  EXPECT_EQ(Of(first).size(), 3U) << "the rest is drawn";
  EXPECT_EQ(*At(first).draw, "0 given 0");
  const TrialId second = Ask().trial();
  EXPECT_EQ(Of(second).at("x"), ParameterValue(0.5));
  EXPECT_EQ(Of(second).at("n"), ParameterValue(std::int64_t{3}));
  EXPECT_TRUE(At(second).draw->empty());
  EXPECT_EQ(At(Ask().trial()).number, 2);
  EXPECT_FALSE(Ask().status.ok()) << "points count as trials";
}

TEST_F(Asking, FixedParametersAreThoseOfAllTrialsThatDoNotSayOtherwise) {
  StudySpec spec = AskSpec();
  spec.fixed = {{"x", 0.125}};
  Create(spec);
  EXPECT_EQ(Of(Ask().trial()).at("x"), ParameterValue(0.125));
  EXPECT_EQ(Of(Ask({{"kind", std::string("b")}}).trial()).at("x"), ParameterValue(0.125));
  EXPECT_EQ(Of(Ask({{"x", 0.75}}).trial()).at("x"), ParameterValue(0.75));
}

TEST_F(Asking, ATrialRunsWithWhatTheSamplerDrew) {
  Create(AskSpec());
  for (int i = 0; i < 20; ++i) {
    const Reply reply = Ask();
    ASSERT_TRUE(reply.status.ok()) << reply.status;
    EXPECT_EQ(At(reply.trial()).state, TrialState::kRunning);
    EXPECT_EQ(At(reply.trial()).number, i);
    EXPECT_EQ(At(reply.trial()).started, At(reply.trial()).created);
    EXPECT_TRUE(study().spec.space.Validate(ParametersOf(reply.trial())).ok());
  }
  EXPECT_EQ(study().suggestions.size(), 3u) << "equal distributions are kept once";
}

TEST_F(Asking, TheSameSeedAndAnswersGiveTheSameTrials) {
  const auto run = [](std::uint64_t seed) {
    Core core(TunerState{}, CoreOptions{});
    StudySpec spec = AskSpec();
    spec.sampler = {"tpe", {{"startup_trials", 3}}};
    spec.seed = seed;
    Time now{1'000'000};
    core.Step(now, CreateStudy{spec, false});
    std::vector<double> drawn;
    for (int i = 0; i < 12; ++i) {
      now = After(now, 1);
      const TrialId id = core.Step(now, AskTrial{"asked", {}, {}}).reply.trial();
      for (const SuggestedValue& s : core.state().trials.at(id).suggested) {
        drawn.push_back(s.value);
      }
      core.Step(now, TellEnd{id, TrialState::kComplete, {drawn.back()}});
    }
    return drawn;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

TEST_F(Asking, TheSamplerLearnsFromWhatClientsTold) {
  StudySpec spec = AskSpec(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  spec.sampler = {"tpe", {{"startup_trials", 10}}};
  Create(spec);
  double distance = 0;
  for (int i = 0; i < 60; ++i) {
    const TrialId id = Ask().trial();
    const double x = std::get<double>(Of(id).at("x"));
    if (i >= 40) distance += std::abs(x - 0.3) / 20;
    ASSERT_TRUE(Step(TellEnd{id, TrialState::kComplete, {(x - 0.3) * (x - 0.3)}}).status.ok());
  }
  EXPECT_LT(distance, 0.15) << "uniform draws are 0.29 away on average";
}

TEST_F(Asking, WhatFailedIsNotDrawnAgain) {
  Create(AskSpec(R"({"kind": {"_type": "choice", "_value": ["a", "b"]}})"));
  const TrialId failed = Ask().trial();
  Step(TellEnd{failed, TrialState::kFail, {}});
  const TrialId other = Ask().trial();
  EXPECT_NE(Of(other), Of(failed));
  Step(TellEnd{other, TrialState::kComplete, {1}});
  EXPECT_THAT(std::string(Ask().status.message()), HasSubstr("every configuration"));
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(Asking, FixedParametersAreKeptAndTheOthersDrawn) {
  Create(AskSpec());
  const Reply reply = Ask({{"kind", std::string("b")}, {"n", std::int64_t{4}}});
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  EXPECT_EQ(Of(reply.trial()).at("kind"), ParameterValue(std::string("b")));
  EXPECT_EQ(Of(reply.trial()).at("n"), ParameterValue(std::int64_t{4}));
  EXPECT_TRUE(study().spec.space.Validate(ParametersOf(reply.trial())).ok());
}

TEST_F(Asking, FixedParametersOutsideTheSpaceAreRefused) {
  Create(AskSpec());
  EXPECT_THAT(std::string(Ask({{"x", 2.0}}).status.message()), HasSubstr("parameter \"x\" is 2"));
  EXPECT_THAT(std::string(Ask({{"y", 0.5}}).status.message()), HasSubstr("\"y\" is not in"));
  EXPECT_THAT(std::string(Enqueue({{"kind", std::string("c")}}).status.message()),
              HasSubstr("choice"));
  EXPECT_TRUE(study().trials.empty());
}

TEST_F(Asking, WaitingTrialsComeFirstInTheirOrder) {
  Create(AskSpec());
  const TrialId first = Enqueue({{"x", 0.25}}).trial();
  const TrialId second = Enqueue({{"x", 0.75}}).trial();
  EXPECT_EQ(At(first).state, TrialState::kWaiting);
  EXPECT_TRUE(At(first).suggested.empty()) << "what is not fixed is drawn when it is asked for";
  EXPECT_EQ(At(first).attributes.system.at("fixed_params"), R"({"x":0.25})")
      << "as Optuna's clients read it";
  const Reply asked = Ask();
  EXPECT_EQ(asked.trial(), first);
  EXPECT_EQ(At(first).state, TrialState::kRunning);
  EXPECT_LT(At(first).created, At(first).started);
  EXPECT_EQ(Of(first).at("x"), ParameterValue(0.25));
  EXPECT_EQ(Of(first).size(), 3u);
  EXPECT_GT(Ask({{"x", 0.5}}).trial(), second) << "who fixes parameters gets a trial of his own";
  EXPECT_EQ(Ask().trial(), second);
  EXPECT_EQ(Of(second).at("x"), ParameterValue(0.75));
}

TEST_F(Asking, WhatOptunaEnqueuedIsTakenAsFarAsTheSpaceKnowsIt) {
  Create(AskSpec());
  auto waiting = std::make_shared<TrialTemplate>();
  waiting->attributes.system["fixed_params"] = R"({"x": 0.5, "n": 99, "unknown": null})";
  const TrialId odd = Step(CreateTrial{study().id, waiting}).trial();
  auto other = std::make_shared<TrialTemplate>();
  other->attributes.system["fixed_params"] = R"({"x": 0.5, "n": 99, "unknown": 1})";
  const TrialId some = Step(CreateTrial{study().id, other}).trial();
  ASSERT_EQ(Ask().trial(), odd);
  EXPECT_TRUE(study().spec.space.Validate(ParametersOf(odd)).ok());
  EXPECT_THAT(study().decisions.back().reason, HasSubstr("cannot be read"));
  ASSERT_EQ(Ask().trial(), some);
  EXPECT_EQ(Of(some).at("x"), ParameterValue(0.5));
  EXPECT_TRUE(study().spec.space.Validate(ParametersOf(some)).ok());
  EXPECT_THAT(study().decisions.back().reason, HasSubstr("\"n\" was enqueued as 99"));
}

constexpr char kNested[] = R"({"opt": {"_type": "choice", "_value": [
    {"_name": "sgd", "momentum": {"_type": "uniform", "_value": [0, 1]},
     "decay": {"_type": "choice", "_value": [0.1, 0.2]}}, {"_name": "adam"}]}})";

TEST_F(Asking, OnlyActiveParametersAreDrawn) {
  Create(AskSpec(kNested));
  std::set<std::size_t> sizes;
  for (int i = 0; i < 20; ++i) {
    const auto drawn = ParametersOf(Ask().trial());
    EXPECT_TRUE(study().spec.space.Validate(drawn).ok()) << study().spec.space.Validate(drawn);
    sizes.insert(drawn.size());
  }
  EXPECT_EQ(sizes, (std::set<std::size_t>{1, 3}));
}

TEST_F(Asking, AFixedChoiceBringsTheParametersOfItsOption) {
  Create(AskSpec(kNested));
  for (int i = 0; i < 10; ++i) {
    const auto drawn = Of(Ask({{"opt", "sgd"}, {"opt/sgd/decay", 0.2}}).trial());
    EXPECT_EQ(drawn.size(), 3u);
    EXPECT_EQ(drawn.at("opt/sgd/decay"), ParameterValue(0.2));
    EXPECT_EQ(Of(Ask({{"opt", "adam"}}).trial()).size(), 1u);
  }
  const Reply alone = Ask({{"opt/sgd/decay", 0.2}});
  EXPECT_THAT(std::string(alone.status.message()),
              HasSubstr("belongs to option \"sgd\" of \"opt\", which is missing"));
}

TEST_F(Asking, WhatIsEnqueuedWithoutItsOptionIsLeftOut) {
  Create(AskSpec(kNested));
  EXPECT_FALSE(Enqueue({{"opt", "adam"}, {"opt/sgd/decay", 0.2}}).status.ok());
  ASSERT_TRUE(Enqueue({{"opt", "sgd"}, {"opt/sgd/decay", 0.1}}).status.ok());
  const auto drawn = Of(Ask().trial());
  EXPECT_EQ(drawn.at("opt/sgd/decay"), ParameterValue(0.1));
  EXPECT_EQ(drawn.size(), 3u);
}

TEST_F(Asking, ATrialThatIsQueuedAgainKeepsItsParameters) {
  Create(AskSpec());
  const TrialId lost = Ask().trial();
  auto again = std::make_shared<TrialTemplate>();
  for (const SuggestedValue& s : At(lost).suggested) {
    again->parameters.emplace_back(study().suggestions.at(static_cast<std::size_t>(s.suggestion)),
                                   s.value);
  }
  Step(CreateTrial{study().id, again});
  const TrialId taken = Ask().trial();
  EXPECT_EQ(Of(taken), Of(lost));
}

TEST_F(Asking, StudiesWithoutASpaceHaveNothingToDraw) {
  StudySpec spec = AskSpec();
  spec.space = SearchSpace();
  Create(spec);
  const Reply reply = Ask();
  EXPECT_TRUE(absl::IsFailedPrecondition(reply.status));
  EXPECT_THAT(std::string(reply.status.message()), HasSubstr("no search space"));
  EXPECT_TRUE(Enqueue({{"anything", 1.0}}).status.ok()) << "its clients know what that is";
}

TEST_F(Asking, IsForTrialsOfClients) {
  StudySpec spec = Spec(2);
  Step(CreateStudy{spec, false});
  EXPECT_TRUE(absl::IsPermissionDenied(Step(AskTrial{"s", {}, {}}).status));
  EXPECT_TRUE(absl::IsNotFound(Step(AskTrial{"absent", {}, {}}).status));
}

TEST_F(Asking, TheNumberOfTrialsIsLimitedAndTheStudyEndsWithThem) {
  StudySpec spec = AskSpec();
  spec.max_trials = 2;
  Create(spec);
  const TrialId first = Ask().trial();
  const TrialId second = Enqueue({}).trial();
  EXPECT_THAT(std::string(Enqueue({}).status.message()), HasSubstr("has all its 2 trials"));
  EXPECT_EQ(Ask().trial(), second) << "a waiting one is within the limit";
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask().status));
  Step(TellEnd{first, TrialState::kComplete, {1}});
  EXPECT_EQ(study().state, StudyState::kRunning);
  Step(TellEnd{second, TrialState::kFail, {}});
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_THAT(std::string(Ask().status.message()), HasSubstr("COMPLETE"));
  Step(ResumeStudy{"asked", 3, 0});
  EXPECT_TRUE(Ask().status.ok());
}

TEST_F(Asking, AStudyWhoseTrialsWereAllToldAsFailedHasFailed) {
  StudySpec spec = AskSpec();
  spec.max_trials = 1;
  Create(spec);
  Step(TellEnd{Ask().trial(), TrialState::kFail, {}});
  EXPECT_EQ(study().state, StudyState::kFailed);
  EXPECT_EQ(study().reason, "its only trial failed");
  Step(ResumeStudy{"asked", 2, 0});
  Step(TellEnd{Ask().trial(), TrialState::kComplete, {1}});
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(Asking, SoManyRunAtATime) {
  StudySpec spec = AskSpec();
  spec.max_concurrent_trials = 1;
  Create(spec);
  const TrialId first = Ask().trial();
  EXPECT_TRUE(absl::IsResourceExhausted(Ask().status));
  Step(TellEnd{first, TrialState::kFail, {}});
  EXPECT_TRUE(Ask().status.ok());
}

TEST_F(Asking, PastItsTimeTheStudyEnds) {
  StudySpec spec = AskSpec();
  spec.time_limit_s = 60;
  Create(spec);
  EXPECT_TRUE(Ask().status.ok());
  Wait(61);
  EXPECT_THAT(std::string(Ask().status.message()), HasSubstr("time limit of 60 s"));
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(Asking, PastItsTimeNoWaitingTrialIsHandedOut) {
  StudySpec spec = AskSpec();
  spec.time_limit_s = 60;
  Create(spec);
  const TrialId waiting = Enqueue({}).trial();
  Wait(61);
  EXPECT_THAT(std::string(Ask().status.message()), HasSubstr("time limit of 60 s"));
  EXPECT_EQ(At(waiting).state, TrialState::kWaiting);
  EXPECT_EQ(study().state, StudyState::kComplete);
}

// Programs that draw parameters by themselves, as Optuna's do, create trials instead of asking.
class Creating : public Asking {
 protected:
  Reply CreateAs(TrialState state, std::vector<double> values = {}) {
    auto content = std::make_shared<TrialTemplate>();
    content->state = state;
    content->values = std::move(values);
    return Step(CreateTrial{study().id, content});
  }
  Reply CreateOne() { return Step(CreateTrial{study().id, nullptr}); }
  Reply Start(TrialId id) { return Step(SetTrialState{id, TrialState::kRunning, {}}); }
  absl::Status Complete(TrialId id) {
    return Step(SetTrialState{id, TrialState::kComplete, {1}}).status;
  }
};

TEST_F(Creating, TheNumberOfTrialsIsLimitedAndTheStudyEndsWithThem) {
  StudySpec spec = AskSpec();
  spec.max_trials = 2;
  Create(spec);
  const TrialId first = CreateOne().trial();
  const TrialId second = CreateAs(TrialState::kWaiting).trial();
  for (const Reply& refused :
       {CreateOne(), CreateAs(TrialState::kRunning), CreateAs(TrialState::kWaiting)}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status)) << refused.status;
    EXPECT_THAT(std::string(refused.status.message()), HasSubstr("has all its 2 trials"));
  }
  EXPECT_EQ(study().trials.size(), 2u);
  EXPECT_TRUE(Start(second).updated()) << "a waiting one is within the limit";
  EXPECT_TRUE(CreateAs(TrialState::kComplete, {1}).status.ok()) << "a record";
  EXPECT_TRUE(Complete(first).ok());
  EXPECT_EQ(study().state, StudyState::kRunning);
  EXPECT_TRUE(Complete(second).ok());
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(Creating, SoManyRunAtATime) {
  StudySpec spec = AskSpec();
  spec.max_concurrent_trials = 1;
  Create(spec);
  const TrialId first = CreateOne().trial();
  const TrialId waiting = CreateAs(TrialState::kWaiting).trial();
  ASSERT_TRUE(waiting);
  EXPECT_TRUE(absl::IsResourceExhausted(CreateOne().status));
  EXPECT_TRUE(absl::IsResourceExhausted(CreateAs(TrialState::kRunning).status));
  EXPECT_TRUE(absl::IsResourceExhausted(Start(waiting).status));
  EXPECT_EQ(At(waiting).state, TrialState::kWaiting);
  EXPECT_FALSE(Start(first).updated()) << "it runs already, which is no error";
  EXPECT_TRUE(Complete(first).ok());
  EXPECT_TRUE(Start(waiting).updated());
}

TEST_F(Creating, PastItsTimeTheStudyEnds) {
  StudySpec spec = AskSpec();
  spec.time_limit_s = 60;
  Create(spec);
  const TrialId running = CreateOne().trial();
  ASSERT_TRUE(running);
  Wait(61);
  EXPECT_THAT(std::string(CreateOne().status.message()), HasSubstr("time limit of 60 s"));
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_THAT(std::string(CreateOne().status.message()), HasSubstr("COMPLETE"));
  EXPECT_TRUE(Complete(running).ok()) << "what was done until then is not lost";
}

TEST_F(Creating, PastItsTimeNoWaitingTrialStarts) {
  StudySpec spec = AskSpec();
  spec.time_limit_s = 60;
  Create(spec);
  const TrialId waiting = CreateAs(TrialState::kWaiting).trial();
  ASSERT_TRUE(waiting);
  Wait(61);
  EXPECT_THAT(std::string(Start(waiting).status.message()), HasSubstr("time limit of 60 s"));
  EXPECT_EQ(At(waiting).state, TrialState::kWaiting);
  EXPECT_EQ(study().state, StudyState::kComplete);
  ASSERT_TRUE(Step(ResumeStudy{"asked", 0, 600}).status.ok());
  EXPECT_EQ(Ask().trial(), waiting);
}

TEST_F(Creating, AStoppedStudyStartsNoWaitingTrial) {
  Create(AskSpec());
  const TrialId waiting = CreateAs(TrialState::kWaiting).trial();
  ASSERT_TRUE(Step(StopStudy{"asked"}).status.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Start(waiting).status));
  EXPECT_EQ(At(waiting).state, TrialState::kWaiting);
  ASSERT_TRUE(Step(ResumeStudy{"asked", 0, 0}).status.ok());
  EXPECT_TRUE(Start(waiting).updated());
}

TEST_F(Asking, AGridEndsWithItsLastPoint) {
  StudySpec spec = AskSpec(R"({"kind": {"_type": "choice", "_value": ["a", "b"]}})");
  spec.sampler = {"grid", {}};
  Create(spec);
  const TrialId a = Ask().trial();
  const TrialId b = Ask().trial();
  EXPECT_NE(Of(a).at("kind"), Of(b).at("kind"));
  EXPECT_THAT(std::string(Ask().status.message()), HasSubstr("every configuration"));
  Step(TellEnd{a, TrialState::kComplete, {1}});
  Step(TellEnd{b, TrialState::kComplete, {1}});
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(Asking, AGridTriesWhatIsLeftAfterAnEnqueuedPoint) {
  StudySpec spec = AskSpec(R"({"a": {"_type": "choice", "_value": [1, 2]},
                               "b": {"_type": "normal", "_value": [0, 1]}})");
  spec.sampler = {"grid", {{"points", 2}}};
  Create(spec);
  const TrialId first = Ask({{"a", std::int64_t{2}}}).trial();
  EXPECT_EQ(Of(first).at("a"), ParameterValue(std::int64_t{2}));
  Step(TellEnd{first, TrialState::kComplete, {1}});
  EXPECT_TRUE(Enqueue({{"a", std::int64_t{2}}, {"b", 7.0}}).status.ok()) << "not of the grid";
  EXPECT_TRUE(Enqueue(ParametersOf(first)).status.ok());
  std::vector<TrialId> trials = {Ask().trial(), Ask().trial()};
  Core restarted(core_.state(), CoreOptions{});
  std::set<std::map<std::string, ParameterValue>> tried = {Of(first)};
  for (int i = 0; i < 3; ++i) {
    trials.push_back(Ask().trial());
    tried.insert(Of(trials.back()));
    const TrialId there = restarted.Step(now_, AskTrial{"asked", {}, {}}).reply.trial();
    EXPECT_EQ(restarted.state().trials.at(there).suggested, At(trials.back()).suggested);
  }
  EXPECT_EQ(tried.size(), 4u);
  EXPECT_THAT(std::string(Ask().status.message()), HasSubstr("every configuration"));
  for (const TrialId trial : trials) Step(TellEnd{trial, TrialState::kComplete, {1}});
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(Asking, SeveralDirectionsNeedASamplerThatDoesNotGoByOne) {
  StudySpec spec = AskSpec();
  spec.directions = {Direction::kMinimize, Direction::kMaximize};
  spec.sampler = {"cmaes", {}};
  EXPECT_THAT(std::string(Step(CreateStudy{spec, false}).status.message()),
              HasSubstr("\"sampler\": \"cmaes\""));
  spec.sampler = {"tpe", {}};
  spec.pruner = {"median", {}};
  EXPECT_THAT(std::string(Step(CreateStudy{spec, false}).status.message()),
              HasSubstr("\"pruner\""));
  spec.pruner = {"none", {}};
  Create(spec);
  EXPECT_TRUE(Step(TellEnd{Ask().trial(), TrialState::kComplete, {1, 2}}).status.ok());
}

TEST_F(Asking, ARepeatedRequestGetsTheSameTrialAlsoAfterARestart) {
  Create(AskSpec());
  const Reply first = Ask({}, "client-1/7");
  EXPECT_FALSE(first.existed());
  const Reply again = Ask({}, "client-1/7");
  EXPECT_EQ(again.trial(), first.trial());
  EXPECT_TRUE(again.existed());
  EXPECT_NE(Ask({}, "client-1/8").trial(), first.trial());
  const TrialId queued = Enqueue({}, "client-1/7").trial();
  EXPECT_NE(queued, first.trial()) << "keys belong to what is asked for";
  EXPECT_EQ(Enqueue({}, "client-1/7").trial(), queued);
  EXPECT_EQ(Ask({}, "client-1/9").trial(), queued) << "one trial may have a key of each";

  Core restarted(core_.state(), CoreOptions{});
  const auto ask = [&](const std::string& key) {
    return restarted.Step(now_, AskTrial{"asked", {}, key}).reply.trial();
  };
  EXPECT_EQ(ask("client-1/7"), first.trial());
  EXPECT_EQ(ask("client-1/9"), queued);
  EXPECT_EQ(restarted.Step(now_, EnqueueTrial{"asked", {}, {}, "client-1/7"}).reply.trial(),
            queued);
}

TEST_F(Asking, ARepeatedRequestIsAnsweredInAStudyThatHasEnded) {
  StudySpec spec = AskSpec();
  spec.max_trials = 1;
  Create(spec);
  const TrialId only = Ask({}, "k").trial();
  Step(TellEnd{only, TrialState::kComplete, {1}});
  ASSERT_EQ(study().state, StudyState::kComplete);
  const Reply again = Ask({}, "k");
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_EQ(again.trial(), only);
}

TEST_F(Asking, OptunasClientsMayRepeatThemselvesToo) {
  Create(AskSpec());
  const TrialId first = Step(CreateTrial{study().id, nullptr, "k"}).trial();
  EXPECT_EQ(Step(CreateTrial{study().id, nullptr, "k"}).trial(), first);
  EXPECT_EQ(study().trials.size(), 1u);
}

TEST_F(Asking, BadKeysAreRefused) {
  Create(AskSpec());
  for (const std::string& key : {std::string("a b"), std::string("\""), std::string("\n"),
                                 std::string(kMaxRequestKeyBytes + 1, 'k')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Ask({}, key).status)) << key;
    EXPECT_TRUE(absl::IsInvalidArgument(Step(CreateTrial{study().id, nullptr, key}).status));
  }
  EXPECT_TRUE(Ask({}, std::string(kMaxRequestKeyBytes, 'k')).status.ok());
  EXPECT_EQ(study().trials.size(), 1u);
}

TEST_F(Asking, AStudyIsMadeOnceWithAKey) {
  const StudySpec spec = AskSpec();
  const Reply made = Step(CreateStudy{spec, false, "k"});
  const Reply again = Step(CreateStudy{spec, false, "k"});
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_TRUE(again.existed());
  EXPECT_EQ(again.study(), made.study());
  EXPECT_TRUE(absl::IsAlreadyExists(Step(CreateStudy{spec, false, "other"}).status));
  EXPECT_TRUE(absl::IsAlreadyExists(Step(CreateStudy{spec, false}).status));
}

// Of two generations those two become parents that keep to what the study's clients told, though
// others are better in both objectives; children that are neither crossed nor mutated repeat them.
TEST_F(Asking, WhatTrialsTellOfConstraintsReachesTheSampler) {
  StudySpec spec = AskSpec(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  spec.directions = {Direction::kMinimize, Direction::kMaximize};
  spec.sampler = {
      "nsga2",
      {{"population_size", 2}, {"crossover_probability", 0}, {"mutation_probability", 1e-300}}};
  Create(spec);
  const auto run = [this](double x, std::vector<double> values, const std::string& constraint) {
    const TrialId id = Ask({{"x", x}}).trial();
    Step(SetTrialAttribute{id, true, "constraints:a", constraint});
    Step(SetTrialState{id, TrialState::kComplete, std::move(values)});
  };
  run(0.1, {5, 5}, "-1");
  run(0.2, {0, 9}, "0.5");
  run(0.3, {0, 9}, "NaN");
  run(0.4, {6, 6}, "0");
  for (int i = 0; i < 8; ++i) {
    const double x = std::get<double>(Of(Ask().trial())["x"]);
    EXPECT_TRUE(x == 0.1 || x == 0.4) << x;
  }
}

}  // namespace
}  // namespace espalier
