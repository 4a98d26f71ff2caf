#include "adapters/nni/service/experiments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "adapters/nni/service/channel.h"
#include "adapters/nni/service/names.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/server/loop/loop.h"
#include "tuner/storage/storage.h"
#include "tuner/study_file/study_file.h"

namespace espalier::nni {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kUrl[] = "http://host:80";

// Experiments on a real loop with a database, and a node of two slots whose processes do what the
// test says.
class ExperimentsTest : public testing::Test {
 protected:
  ExperimentsTest() { Restart(); }

  void Restart() {
    experiments_.reset();
    loop_.reset();
    feed_ = std::make_unique<EventFeed>(NewIncarnation());
    auto storage = OpenSqliteStorage(folder_.path() + "/studies.db");
    ASSERT_TRUE(storage.ok()) << storage.status();
    auto state = (*storage)->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    feed_->Load(*state);
    LoopOptions options;
    options.clock = [this] { return Time{now_us_ += 1000}; };
    options.committed = [this](const std::vector<Change>& changes, const TunerState& now) {
      feed_->Take(changes, now);
    };
    options.read_output = [this](NodeId, const TrialName& trial,
                                 const OutputPart&) -> absl::StatusOr<std::string> {
      if (output_.empty()) return absl::UnavailableError("its agent is not connected");
      return trial.study + "/" + std::to_string(trial.number) + "/" + output_;
    };
    loop_ = std::make_unique<Loop>(
        *std::move(storage), *std::move(state), options, metrics_,
        [this](const std::vector<Command>& commands, const TunerState&) {
          const std::lock_guard lock(mutex_);
          for (const Command& command : commands) {
            if (const auto* start = std::get_if<StartReplicaCommand>(&command)) {
              replicas_[start->trial] = start->replica;
            }
          }
        });
    experiments_ = std::make_unique<Experiments>(*loop_, *feed_);
    loop_->Post(AgentHello{"node", 2, {}});
  }

  std::string OpenBody(const std::string& more = "") {
    return R"({"command": "train", "directory": "/code")" + more + "}";
  }
  json Open(const std::string& more = "") { return Read(experiments_->Open("e", OpenBody(more))); }
  static std::string Parameter(const std::string& parameters) {
    return json{{"sequence", 3},
                {"parameter", R"({"parameter_id": 3, "parameters": )" + parameters + "}"}}
        .dump();
  }
  json Submit(const std::string& trial, const std::string& parameters = R"({"x": 0.5})") {
    return Read(experiments_->Submit("e", trial, Parameter(parameters), kUrl));
  }
  json Events(const std::string& after = "") { return Read(experiments_->Events("e", after, "0")); }
  std::string Secret(const std::string& trial) {
    std::string key;
    EXPECT_TRUE(loop_
                    ->Read([&](const View& view) {
                      key = TextAttribute(view.core.state().FindStudy("nni-e")->attributes,
                                          kChannelKey);
                    })
                    .ok());
    return ChannelSecret(key, "e", trial);
  }
  Experiments::ChannelAnswer Put(const std::string& trial, const std::string& body) {
    return experiments_->ChannelPut("e", trial, Secret(trial), body);
  }
  Experiments::ChannelAnswer Report(const std::string& trial, const std::string& type, int sequence,
                                    const std::string& value) {
    const json metric = {
        {"type", type}, {"sequence", sequence}, {"value", value}, {"parameter_id", 3}};
    return Put(trial, json{{"type", "metric"}, {"metric", metric.dump()}}.dump());
  }
  // The trial's process ends, of its own or by the signal.
  void Exit(const std::string& trial, int code, int signal = 0) {
    ReplicaId replica;
    {
      TrialId id;
      EXPECT_TRUE(loop_
                      ->Read([&](const View& view) {
                        id = feed_->Find(view.core.state().FindStudy("nni-e")->id, trial);
                      })
                      .ok());
      const std::lock_guard lock(mutex_);
      replica = replicas_[id];
    }
    loop_->Post(ReplicaExited{replica, code, signal, "", ""});
  }
  Trial TrialNamed(const std::string& name) {
    Trial trial;
    EXPECT_TRUE(loop_
                    ->Read([&](const View& view) {
                      trial = view.core.state().trials.at(
                          feed_->Find(view.core.state().FindStudy("nni-e")->id, name));
                    })
                    .ok());
    return trial;
  }

  static json Read(const absl::StatusOr<std::string>& answer) {
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? json::parse(*answer) : json();
  }
  static std::string Refusal(const absl::StatusOr<std::string>& answer) {
    return std::string(answer.status().message());
  }

  ScratchFolder folder_;
  Metrics metrics_;
  std::atomic<std::int64_t> now_us_ = 1'000'000'000;
  std::string output_;  // of every trial, as its agent has it
  std::mutex mutex_;
  std::map<TrialId, ReplicaId> replicas_;
  std::unique_ptr<EventFeed> feed_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Experiments> experiments_;
};

TEST_F(ExperimentsTest, AnExperimentIsOpenedOnceAndKeepsItsDefinition) {
  EXPECT_EQ(Open(), (json{{"study", "nni-e"}, {"trials", json::array()}}));
  Submit("a");
  const std::string secret = Secret("a");
  EXPECT_EQ(Open(R"(, "resume": true)")["trials"], json{"a"});
  EXPECT_EQ(Secret("a"), secret);
  EXPECT_THAT(Refusal(experiments_->Open("e", OpenBody(R"(, "max_slots": 1)"))),
              HasSubstr("differs in: max_slots"));
}

TEST_F(ExperimentsTest, ATrialRunsWithNnisParametersToTheLetter) {
  Open(R"(, "checkpoint_directory": "/c")");
  const json shown =
      Submit("a", R"({"x": 1e-5, "list": [1, 2], "whole": 5.0, "none": null, "name": "n"})");
  EXPECT_EQ(shown["state"], "RUNNING");
  EXPECT_EQ(shown["sequence"], 3);
  const Trial trial = TrialNamed("a");
  EXPECT_EQ(json::parse(trial.attributes.system.at(kTrialParameters)),
            json::parse(R"({"x": 1e-5, "list": [1, 2], "whole": 5.0, "none": null, "name": "n"})"));
  EXPECT_EQ(*Find(trial.parameters, "list"), ParameterValue(std::string("[1,2]")));
  EXPECT_EQ(*Find(trial.parameters, "whole"), ParameterValue(5.0));
  const std::map<std::string, std::string> environment(trial.environment.begin(),
                                                       trial.environment.end());
  EXPECT_EQ(environment.at("NNI_TRIAL_JOB_ID"), "a");
  EXPECT_EQ(environment.at("NNI_TRIAL_SEQ_ID"), "3");
  EXPECT_EQ(environment.at("ESPALIER_NNI_SERVICE"), kUrl);
  EXPECT_EQ(environment.at("ESPALIER_NNI_CHANNEL"), "/nni/v1/channel/e/a/" + Secret("a"));
  EXPECT_EQ(environment.at("ESPALIER_NNI_CHECKPOINTS"), "/c/a");
}

TEST_F(ExperimentsTest, NamesThatDifferInCaseAloneAreFine) {
  Open();
  EXPECT_EQ(Submit("a", R"({"lr": 1, "LR": 2})")["state"], "RUNNING");
}

TEST_F(ExperimentsTest, ParametersMayBeAnyJson) {
  Open();
  const std::map<std::string, std::pair<json, ParameterValue>> all = {
      {"list", {{1, 2}, std::string("[1,2]")}},
      {"number", {3, std::int64_t{3}}},
      {"text", {"a", std::string("a")}},
      {"none", {nullptr, std::string("null")}}};
  for (const auto& [name, given] : all) {
    const auto& [parameters, shown] = given;
    Submit(name, parameters.dump());
    const json told = json::parse(experiments_->ChannelGet("e", name, Secret(name)).body);
    EXPECT_EQ(json::parse(told["parameter"].get<std::string>())["parameters"], parameters) << name;
    const Trial trial = TrialNamed(name);
    EXPECT_EQ(json::parse(trial.attributes.system.at(kTrialParameters)),
              (json{{"parameters", parameters}}))
        << name;
    EXPECT_EQ(trial.parameters, (Parameters{{"parameters", shown}})) << name;
  }
  const std::string without = json{{"parameter", R"({"parameter_id": 1})"}}.dump();
  EXPECT_THAT(Refusal(experiments_->Submit("e", "a", without, kUrl)),
              HasSubstr("needs NNI's text of a parameter"));
}

TEST_F(ExperimentsTest, WhatHasTooLongAFlatFormIsShownAsText) {
  Open();
  json choice = {{"_name", std::string(20'000, 'x')}};
  for (int i = 0; i < 100; ++i) choice["k" + std::to_string(i)] = i;
  const json parameters = {{"choice", choice}, {"x", 0.5}};
  Submit("a", parameters.dump());
  const Trial trial = TrialNamed("a");
  EXPECT_EQ(json::parse(trial.attributes.system.at(kTrialParameters)), parameters);
  ASSERT_EQ(trial.parameters.size(), 2U);
  EXPECT_EQ(*Find(trial.parameters, "choice"), ParameterValue(choice.dump()));
}

TEST_F(ExperimentsTest, ReportsCountOnceAndComeBeforeTheEnd) {
  Open();
  Submit("a");
  std::string cursor = Events()["cursor"];
  EXPECT_EQ(Report("a", "PERIODICAL", 0, "0.5").code, 200);
  EXPECT_EQ(Report("a", "PERIODICAL", 0, "0.75").code, 200);
  EXPECT_EQ(Report("a", "FINAL", 0, "NaN").code, 200);
  json news = Events(cursor);
  ASSERT_EQ(news["trials"].size(), 1U);
  EXPECT_EQ(
      news["trials"][0]["metrics"],
      json::parse(R"([{"type": "PERIODICAL", "sequence": 0, "parameter_id": 3, "value": "0.5"},
                            {"type": "FINAL", "sequence": 0, "parameter_id": 3, "value": "NaN"}])"));
  EXPECT_EQ(news["trials"][0]["state"], "RUNNING");
  cursor = news["cursor"];
  Exit("a", 0);
  news = Events(cursor);
  EXPECT_EQ(news["trials"][0]["state"], "SUCCEEDED");
  EXPECT_EQ(news["trials"][0]["metrics"], json::array());
  EXPECT_TRUE(std::isnan(TrialNamed("a").value.value_or(0))) << "not what it reported before";
  EXPECT_EQ(Report("a", "PERIODICAL", 1, "1").code, 410);
  EXPECT_EQ(experiments_->ChannelGet("e", "a", Secret("a")).code, 410);
}

TEST_F(ExperimentsTest, EveryRequestIsAnsweredWithTheSameParameterUntilThereIsAnother) {
  Open();
  Submit("a");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Put("a", R"({"type": "request_parameter"})").code, 200);
    const auto answer = experiments_->ChannelGet("e", "a", Secret("a"));
    EXPECT_EQ(json::parse(json::parse(answer.body)["parameter"].get<std::string>())["parameters"],
              (json{{"x", 0.5}}));
  }
  const std::string next = R"({"parameter_id": 4, "parameters": {"x": 2}})";
  Read(experiments_->SetParameter("e", "a", json{{"parameter", next}}.dump()));
  EXPECT_EQ(json::parse(experiments_->ChannelGet("e", "a", Secret("a")).body)["parameter"], next);
}

TEST_F(ExperimentsTest, TheChannelIsForWhoHasItsSecret) {
  Open();
  Submit("a");
  Submit("b");
  for (const auto& answer :
       {experiments_->ChannelGet("e", "a", Secret("b")), experiments_->ChannelGet("e", "a", ""),
        experiments_->ChannelGet("e", "absent", Secret("absent")),
        experiments_->ChannelGet("absent", "a", Secret("a")),
        experiments_->ChannelPut("e", "a", Secret("b"), "{")}) {
    EXPECT_EQ(answer.status, absl::NotFoundError("no such channel"));
  }
}

TEST_F(ExperimentsTest, ACancelledTrialIsFinalWhenItsProcessIsGone) {
  Open();
  Submit("early");
  Submit("user");
  Submit("waiting");
  EXPECT_EQ(Read(experiments_->Cancel("e", "early", true))["state"], "RUNNING");
  EXPECT_TRUE(Read(experiments_->Cancel("e", "user", false))["ended_at"].is_null());
  EXPECT_EQ(Read(experiments_->Cancel("e", "waiting", false))["state"], "USER_CANCELED");
  Exit("early", -1, 15);
  Exit("user", -1, 9);
  EXPECT_EQ(Read(experiments_->Cancel("e", "early", false))["state"], "EARLY_STOPPED");
  EXPECT_EQ(Read(experiments_->Cancel("e", "user", true))["state"], "USER_CANCELED");
  EXPECT_EQ(Submit("early")["state"], "EARLY_STOPPED") << "it is not run again";
}

TEST_F(ExperimentsTest, AfterAStopOnlyTrialsThatAreSubmittedAgainGoOn) {
  Open();
  Submit("again");
  Submit("forgotten");
  Report("again", "PERIODICAL", 0, "1");
  Read(experiments_->Stop("e"));
  Exit("again", -1, 15);
  Exit("forgotten", -1, 15);
  EXPECT_THAT(Refusal(experiments_->Submit("e", "again", Parameter("{}"), kUrl)),
              HasSubstr("open it again first"));
  Restart();
  EXPECT_EQ(Open(R"(, "resume": true)")["trials"], (json{"again", "forgotten"}));
  EXPECT_EQ(TrialNamed("again").state, TrialState::kPaused);
  const json shown = Submit("again");
  EXPECT_EQ(shown["state"], "RUNNING");
  EXPECT_EQ(shown["metrics"].size(), 1U) << "what it reported before";
  EXPECT_EQ(TrialNamed("again").state, TrialState::kRunning);
  EXPECT_EQ(TrialNamed("forgotten").state, TrialState::kPaused);
  Exit("again", 0);
  EXPECT_EQ(Submit("again")["state"], "SUCCEEDED");
}

TEST_F(ExperimentsTest, AProgramOfOurTrialRunnerShowsItsCurveAndItsLastValueAsFinal) {
  Open();
  Submit("a");
  const TrialId id = TrialNamed("a").id;
  loop_->Post(TellValue{id, 10, 0.5});
  const std::string cursor = Events()["cursor"];
  loop_->Post(TellValue{id, 20, 0.25});
  Exit("a", 0);
  EXPECT_EQ(
      Events(cursor)["trials"][0]["metrics"],
      json::parse(R"([{"type": "PERIODICAL", "sequence": 1, "parameter_id": 3, "value": "0.25"},
                      {"type": "FINAL", "sequence": 0, "parameter_id": 3, "value": "0.25"}])"));
  const std::string last = Events()["cursor"];
  EXPECT_EQ(Events(last)["trials"], json::array());
}

TEST_F(ExperimentsTest, ThePromiseModelMayBeTheAssessor) {
  Open(R"(, "maximize": true, "promise_assessor": true)");
  const auto curve = [this](const std::string& trial, double from, double by) {
    for (int i = 0; i < 12; ++i) {
      Report(trial, "PERIODICAL", i, std::to_string(from + by * i));
    }
  };
  for (const char* good : {"a", "b", "c", "d"}) {
    Submit(good);
    curve(good, 0.5, 0.03);
    Exit(good, 0);
  }
  Submit("hopeless");
  curve("hopeless", 0.1, 0);
  Exit("hopeless", -1, 15);
  const json shown = Submit("hopeless");
  EXPECT_EQ(shown["state"], "EARLY_STOPPED");
  EXPECT_THAT(shown["message"].get<std::string>(), HasSubstr("promise: "));
  EXPECT_LT(shown["metrics"].size(), 12U);
}

TEST_F(ExperimentsTest, NoFinalValueIsMadeUpForATrialThatReportsByTheChannel) {
  Open();
  Submit("a");
  Report("a", "PERIODICAL", 0, "0.5");
  Exit("a", 0);
  EXPECT_EQ(Events()["trials"][0]["metrics"].size(), 1U);
}

TEST_F(ExperimentsTest, ManyOfItsCallersAreServedBesideEachOther) {
  Open();
  std::vector<std::thread> threads;
  for (const char* thread : {"a", "b", "c"}) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < 4; ++i) {
        Submit(thread + std::to_string(i));
        EXPECT_GE(Events()["trials"].size(), static_cast<std::size_t>(i + 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Events()["trials"].size(), 12U);
}

// By Optuna's calls, say, which set any attribute.
TEST_F(ExperimentsTest, OneTrialsAttributesSpoilNoOther) {
  Open();
  Submit("bad");
  Submit("good");
  for (const std::string odd : {"1", "\"good\"", "\"later\"", "{}", "NaN", "[\"x\"]", "\"\""}) {
    SCOPED_TRACE(odd);
    for (const char* key : {kTrial, kSequence, kParameter, "nni:metric:FINAL", "nni:metric:1"}) {
      ASSERT_TRUE(loop_->Post(SetTrialAttribute{TrialNamed("bad").id, true, key, odd}).status.ok());
    }
    const json events = Events();
    ASSERT_EQ(events["trials"].size(), 2U);
    EXPECT_EQ(events["trials"][0]["trial"], "good");
    EXPECT_EQ(events["trials"][0]["state"], "RUNNING");
    EXPECT_EQ(events["trials"][1]["trial"], "bad");
    EXPECT_EQ(events["trials"][1]["metrics"], json::array());
    EXPECT_EQ(Open()["trials"], (json{"bad", "good"}));
    EXPECT_EQ(Submit("good")["sequence"], 3);
    EXPECT_THAT(Refusal(experiments_->Cancel("e", "later", false)), HasSubstr("no trial"));
    const auto asked = experiments_->ChannelGet("e", "bad", Secret("bad"));
    EXPECT_TRUE(json::accept(asked.body)) << asked.body;
  }
}

TEST_F(ExperimentsTest, AnotherStudyOfItsNameIsNoExperiment) {
  Open();
  const auto spec = ParseStudy(R"({"name": "nni-other", "ask_and_tell": true})", "other", "/");
  ASSERT_TRUE(spec.ok()) << spec.status();
  loop_->Post(CreateStudy{*spec});
  EXPECT_THAT(Refusal(experiments_->Events("other", "", "")), HasSubstr("no experiment \"other\""));
  EXPECT_FALSE(experiments_->Open("other", OpenBody()).ok());
}

TEST_F(ExperimentsTest, FilesOfATrialComeFromItsAgentAndItsRecord) {
  Open();
  Submit("a");
  EXPECT_THAT(Refusal(experiments_->File("e", "a", "stdout")),
              HasSubstr("on node node (its agent is not connected)"));
  output_ = "hello";
  EXPECT_EQ(*experiments_->File("e", "a", "stdout"), "nni-e/0/hello");
  EXPECT_THAT(*experiments_->File("e", "a", "trial.log"), HasSubstr("start, 0 to 1 slots"));
  EXPECT_THAT(*experiments_->File("e", "a", "parameter.cfg"), HasSubstr("\"parameter_id\": 3"));
  EXPECT_TRUE(absl::IsNotFound(experiments_->File("e", "a", "../x").status()));
}

}  // namespace
}  // namespace espalier::nni
