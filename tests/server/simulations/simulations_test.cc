// Simulations by a program of the test's own in the place of `tuner`.

#include "tuner/server/simulations/simulations.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/api/direct_tuner.h"

namespace espalier {
namespace {

using Json = nlohmann::json;

// Writes what it was called with beside itself, and the result of a run under its policy.
constexpr char kWrites[] = R"sh(#!/bin/sh
echo "$@" >> "$0.calls"
for word; do
  case $word in
    --lanes=*) file=${word#--lanes=} ;;
    --policy=*) policy=${word#--policy=} ;;
  esac
done
echo "{\"recorded\": {\"best\": 1}, \"runs\": [{\"policy\": \"$policy\", \"remarks\": [\"of $policy\"]}]}" > "$file"
)sh";
constexpr char kFails[] =
    "#!/bin/sh\necho 'first line' >&2\necho 'tuner: it cannot be' >&2\nexit 2\n";
// Until the test lets it go, which may never be.
constexpr char kWaits[] = "#!/bin/sh\nwhile [ ! -e \"$0.go\" ]; do sleep 0.02; done\nexit 1\n";

class SimulationsTest : public testing::Test {
 protected:
  SimulationsTest() {
    std::filesystem::create_directories(folder_);
    StudySpec spec;
    spec.name = "s";
    spec.command = {"true"};
    spec.max_trials = 1;
    spec.sampler = {"random", {}};
    spec.space = *SearchSpace::FromJson(R"json({"x": {"_type": "uniform", "_value": [0, 1]}})json");
    EXPECT_TRUE(tuner_.Post(CreateStudy{spec, false}).status.ok());
  }
  ~SimulationsTest() override { std::filesystem::remove_all(folder_); }

  std::string Program(const std::string& text) const {
    std::ofstream(program_) << text;
    chmod(program_.c_str(), S_IRWXU);
    return program_;
  }
  static std::string TextOf(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  Json Ended(const Simulations& simulations, std::int64_t id) const {
    while (true) {
      const absl::StatusOr<std::string> json = simulations.Json(id);
      EXPECT_TRUE(json.ok()) << json.status();
      if (!json.ok()) return {};
      Json answer = Json::parse(*json);
      if (answer["state"] != "running") return answer;
      poll(nullptr, 0, 5);
    }
  }

  const std::string folder_ = testing::TempDir() + "simulations-" + std::to_string(getpid());
  const std::string program_ = folder_ + "/tuner";
  DirectTuner tuner_;
};

TEST_F(SimulationsTest, AreOfTheStudyAsItWasAndUnderTheOtherPolicy) {
  Simulations simulations(Program(kWrites), "the.db");
  const auto id = simulations.Start(
      tuner_, "s",
      {.policy = "promise_goodput:urgency=1", .pruner = "median", .slots = 6, .seed = 7});
  ASSERT_TRUE(id.ok()) << id.status();
  const Json answer = Ended(simulations, *id);
  EXPECT_EQ(answer["state"], "done") << answer;
  EXPECT_EQ(answer["error"], nullptr);
  EXPECT_EQ(answer["recorded"]["best"], 1);
  ASSERT_EQ(answer["runs"].size(), 2u);
  EXPECT_EQ(answer["runs"][0]["policy"], espalier::TextOf(StudySpec{}.policy));
  EXPECT_EQ(answer["runs"][1]["policy"], "promise_goodput:urgency=1");
  const std::string caveats = answer["caveats"].dump();
  for (const char* text : {"As it was: of promise_goodput",
                           "With promise_goodput:urgency=1: of promise_goodput:urgency=1"}) {
    EXPECT_NE(caveats.find(text), std::string::npos) << caveats;
  }
  EXPECT_NE(caveats.find("has not ended"), std::string::npos) << caveats;

  std::istringstream calls(TextOf(program_ + ".calls"));
  std::string as_it_was;
  std::string other;
  std::getline(calls, as_it_was);
  std::getline(calls, other);
  for (const std::string& call : {as_it_was, other}) {
    EXPECT_EQ(call.rfind("simulate study --db=the.db --study=s ", 0), 0u) << call;
    EXPECT_NE(call.find("--slots=6 --nodes=1 "), std::string::npos) << call;
    EXPECT_NE(call.find("--seed=7"), std::string::npos) << call;
  }
  EXPECT_EQ(as_it_was.find("--pruner"), std::string::npos) << "the study's own: " << as_it_was;
  EXPECT_NE(other.find("--pruner=median"), std::string::npos) << other;
}

TEST_F(SimulationsTest, SayWhyTheyFailed) {
  Simulations simulations(Program(kFails), "the.db");
  const auto id = simulations.Start(tuner_, "s", {.policy = "fixed", .slots = 1});
  ASSERT_TRUE(id.ok()) << id.status();
  const Json answer = Ended(simulations, *id);
  EXPECT_EQ(answer["state"], "failed");
  EXPECT_EQ(answer["error"], "tuner: it cannot be");
  EXPECT_EQ(answer["runs"], Json::array());
}

TEST_F(SimulationsTest, AreOneAtATimeAndEndWithTheService) {
  Simulations simulations(Program(kWaits), "the.db");
  const auto first = simulations.Start(tuner_, "s", {.policy = "fixed", .slots = 1});
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second =
      simulations.Start(tuner_, "s", {.policy = "fixed", .slots = 1}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(second)) << second;
  EXPECT_NE(std::string(second.message()).find("simulation 1 is under way"), std::string::npos);
  simulations.Stop();
}

TEST_F(SimulationsTest, TheNewestAreKept) {
  Simulations simulations(Program(kFails), "the.db");
  for (std::size_t i = 0; i <= kSimulationsKept; ++i) {
    const auto id = simulations.Start(tuner_, "s", {.policy = "fixed", .slots = 1});
    ASSERT_TRUE(id.ok()) << id.status();
    Ended(simulations, *id);
  }
  EXPECT_TRUE(absl::IsNotFound(simulations.Json(1).status()));
  EXPECT_TRUE(simulations.Json(2).ok());
}

TEST_F(SimulationsTest, WhatCannotBeSimulatedIsRefused) {
  const auto refused = [this](Simulations& simulations, const std::string& study,
                              const SimulationWanted& wanted) {
    return simulations.Start(tuner_, study, wanted).status().ToString();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  Simulations in_memory(program_, "");
  has(refused(in_memory, "s", {.policy = "fixed", .slots = 1}), "keeps its studies in memory");
  Simulations simulations(program_, "the.db");
  has(refused(simulations, "t", {.policy = "fixed", .slots = 1}), "NOT_FOUND");
  has(refused(simulations, "s", {.policy = "best", .slots = 1}), "promise_goodput");
  has(refused(simulations, "s", {.policy = "fixed:slots=1", .slots = 1}), "\"slots\"");
  has(refused(simulations, "s", {.policy = "pollux:fairness", .slots = 1}), "name=number");
  has(refused(simulations, "s", {.policy = "fixed", .pruner = "x", .slots = 1}), "\"pruner\"");
  has(refused(simulations, "s", {.policy = "fixed"}), "got 0, which is what the pool has");
}

}  // namespace
}  // namespace espalier
