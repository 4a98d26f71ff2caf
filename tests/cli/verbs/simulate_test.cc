// `tuner simulate` as scripts see it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/verbs/run_tuner.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Simulate : public ::testing::Test {
 protected:
  Outcome Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "simulate");
    return RunTuner(arguments, directory_.path());
  }
  std::string Text(const std::string& name) const {
    std::ifstream file(directory_.File(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void ExpectRefused(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& words) const {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
    for (const std::string& word : words) EXPECT_THAT(outcome.errors, HasSubstr(word));
  }

  TemporaryDirectory directory_;
};

TEST_F(Simulate, OnePolicyGivesItsFigures) {
  const Outcome outcome = Run({"poolbench", "--trials", "6", "--slots", "4", "--policy", "fixed"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("6 trials on 4 slots of 1 node"));
  for (const char* name : {"policy", "finish", "best", "slot use", "resizes", "pruned"}) {
    EXPECT_THAT(outcome.output, HasSubstr(std::string("\n") + name));
  }
}

TEST_F(Simulate, SeveralPoliciesGiveARowEach) {
  const Outcome outcome = Run({"poolbench", "--trials", "6", "--slots", "4", "--policy", "fixed",
                               "--policy", "promise_goodput:min_gain=0.1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("\nfixed "));
  EXPECT_THAT(outcome.output, HasSubstr("\npromise_goodput:min_gain=0.1 "));
}

TEST_F(Simulate, RecordedJobsThatAreNotInstalledAreToBeNamed) {
  ExpectRefused({"pollux", "workload-1"},
                {"no recorded jobs are installed at", "name their folder before workload-1"});
}

TEST_F(Simulate, SameSeedSameBytes) {
  for (const char* file : {"a", "b", "other"}) {
    const std::string seed = std::string(file) == "other" ? "6" : "5";
    const Outcome outcome =
        Run({"poolbench", "--trials", "8", "--slots", "8", "--seed", seed, "--json",
             std::string(file) + ".json", "--decisions", std::string(file) + ".txt"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  }
  EXPECT_EQ(Text("a.json"), Text("b.json"));
  EXPECT_EQ(Text("a.txt"), Text("b.txt"));
  EXPECT_NE(Text("a.json"), Text("other.json"));
  EXPECT_THAT(Text("a.txt"), HasSubstr("starts on 1 slot: "));
  EXPECT_THAT(Text("a.json"), HasSubstr("\"log10_lr\""));
}

TEST_F(Simulate, WhatAPageDrawsOfEachPolicy) {
  const Outcome outcome =
      Run({"poolbench", "--trials", "6", "--slots", "4", "--nodes", "2", "--policy", "fixed",
           "--policy", "promise_goodput", "--lanes", "lanes.json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const nlohmann::json lanes = nlohmann::json::parse(Text("lanes.json"));
  ASSERT_EQ(lanes["runs"].size(), 2u);
  EXPECT_EQ(lanes["runs"][1]["policy"], "promise_goodput");
  for (const nlohmann::json& run : lanes["runs"]) {
    EXPECT_EQ(run["figures"]["trials"], 6);
    const nlohmann::json& drawn = run["lanes"];
    ASSERT_EQ(drawn["nodes"].size(), 2u);
    for (const nlohmann::json& node : drawn["nodes"]) EXPECT_EQ(node["slots"], 2);
    const nlohmann::json& spans = drawn["spans"];
    const std::size_t count = spans["from"].size();
    EXPECT_GT(count, 5u);
    for (const auto& [key, column] : spans.items()) EXPECT_EQ(column.size(), count) << key;
    double held_s = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double from_s = spans["from"][i];
      const double to_s = spans["to"][i];
      EXPECT_LE(0, from_s);
      EXPECT_LE(from_s, to_s);
      EXPECT_LE(to_s, drawn["to"]);
      held_s += to_s - from_s;
    }
    // What lies under a pixel together is one span, with what lies between.
    EXPECT_NEAR(held_s, run["figures"]["slot_seconds"], 0.02 * held_s);
    double used_s = 0;
    for (const double held : drawn["use"]["held"]) {
      used_s += held * drawn["to"].get<double>() / static_cast<double>(drawn["use"]["at"].size());
    }
    EXPECT_NEAR(used_s, run["figures"]["slot_seconds"], 1e-3 * used_s);
  }
}

TEST_F(Simulate, EachPolicyHasItsPage) {
  const Outcome outcome = Run({"poolbench", "--trials", "4", "--slots", "2", "--policy", "fixed",
                               "--policy", "promise_goodput", "--html", "page.html"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(Text("page-fixed.html"), HasSubstr("decisions.</p>"));
  EXPECT_THAT(Text("page-promise_goodput.html"), HasSubstr("<td>COMPLETE</td>"));
}

TEST_F(Simulate, AStreamEndsAtItsTarget) {
  const Outcome outcome = Run({"poolbench", "--stream", "--target", "0.3", "--slots", "4"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("a stream of trials until 0.3"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("target                -")));
}

TEST_F(Simulate, NodesOfSeveralTemplatesCostLess) {
  std::ofstream(directory_.File("templates.json")) << R"([
    {"name": "on-demand", "slots": 2, "price_per_hour": 3, "max_nodes": 4, "start_s": 20},
    {"name": "spot", "slots": 2, "price_per_hour": 1, "max_nodes": 2, "start_s": 20, "spot": true}])";
  const Outcome outcome = Run({"poolbench", "--trials", "12", "--slots", "8", "--nodes", "4",
                               "--pool-size", "utility_price", "--node-templates",
                               directory_.File("templates.json"), "--decisions", "log.txt"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(Text("log.txt"), HasSubstr("pool grows from 0 to 2 of spot, all in all "));
}

TEST_F(Simulate, EachVariantOfAPolicyHasItsPage) {
  const Outcome outcome =
      Run({"poolbench", "--trials", "4", "--slots", "2", "--policy", "promise_goodput:horizon_s=1",
           "--policy", "promise_goodput:horizon_s=100", "--html", "page.html"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(Text("page-promise_goodput-horizon_s=1.html"), HasSubstr("<table>"));
  EXPECT_THAT(Text("page-promise_goodput-horizon_s=100.html"), HasSubstr("<table>"));
}

TEST_F(Simulate, WhatIsCutOffHasNoTimeOfItsEnd) {
  const Outcome outcome = Run({"poolbench", "--trials", "12", "--slots", "2", "--until-s", "20",
                               "--policy", "fixed", "--json", "run.json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("\nfinish                -\n"));
  EXPECT_THAT(outcome.output, HasSubstr("Under fixed "));
  EXPECT_THAT(outcome.output,
              HasSubstr("trials that were begun had not ended after 20s of virtual time."));
  EXPECT_THAT(Text("run.json"), HasSubstr("\"finish_s\": null"));
}

TEST_F(Simulate, AStreamKeepsItsTimeLimitAndTellsTheTimeToItsOwnTarget) {
  const Outcome limited = Run({"poolbench", "--stream", "--target", "0.001", "--slots", "4",
                               "--time-limit", "100", "--policy", "fixed"});
  ASSERT_EQ(limited.exit_code, 0) << limited.errors;
  EXPECT_THAT(limited.output, HasSubstr("\nfinish                1m40s"));
  EXPECT_THAT(limited.output, HasSubstr("target                -"));
  const Outcome reached = Run({"poolbench", "--stream", "--slots", "8", "--policy", "fixed"});
  ASSERT_EQ(reached.exit_code, 0) << reached.errors;
  EXPECT_THAT(reached.output, HasSubstr("until 0.085"));
  EXPECT_THAT(reached.output, Not(HasSubstr("target                -")));
}

constexpr const char* kEmulatedStudy = R"({"name": "e", "command": [%s],
  "metric": {"name": "error", "direction": "minimize"}, "sampler": "random", "pruner": "none", "trials": 3,
  "search_space": {"lr": {"_type": "loguniform", "_value": [0.01, 1]},
                   "batch_size": {"_type": "choice", "_value": [%s]}}%s})";

TEST_F(Simulate, TheCommandOfAnEmulatedStudySaysItsEpochs) {
  const auto finish_of = [this](const std::string& command, const std::string& batches) {
    char text[1024];
    std::snprintf(text, sizeof text, kEmulatedStudy, command.c_str(), batches.c_str(), "");
    const Outcome outcome =
        Run({"emulated", directory_.Write("e.json", text), "--policy", "fixed"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome.output;
  };
  const std::string own = finish_of(R"("emulated", "--epochs", "3", "--samples", "128")", "128");
  EXPECT_THAT(own, Not(HasSubstr("is not that of")));
  EXPECT_NE(own, finish_of(R"("emulated", "--epochs", "9", "--samples", "128")", "128"));
  EXPECT_THAT(
      finish_of(R"("python3", "train.py")", "0, 128"),
      HasSubstr("Its program is not that of examples/emulated: each trial is simulated as one "
                "of those, with 9 epochs of 6144 samples."));
}

TEST_F(Simulate, AStudyThatCannotRunIsRefused) {
  char text[1024];
  std::snprintf(text, sizeof text, kEmulatedStudy, R"("emulated")", "128",
                R"(, "slots": {"min": 32, "max": 64})");
  ExpectRefused({"emulated", directory_.Write("large.json", text)},
                {"needs 32 slots, and the pool has 16 at most"});
  ExpectRefused(
      {"emulated", directory_.Write("queue.json", R"({"name": "q", "command": ["emulated"],
                  "sampler": "queue", "metric": {"name": "e", "direction": "minimize"}})")},
      {"from a queue", "random"});
  ExpectRefused(
      {"emulated", directory_.Write("asked.json", R"({"name": "a", "ask_and_tell": true})")},
      {"from clients", "random"});
}

TEST_F(Simulate, TimesAreNumbersThatItsClockCanCount) {
  for (const char* option :
       {"--resize-s", "--start-s", "--until-s", "--time-limit", "--node-start"}) {
    for (const char* value : {"1e13", "nan", "inf", "-1"}) {
      ExpectRefused({"poolbench", option, value}, {option});
    }
  }
  ExpectRefused({"poolbench", "--target", "nan"}, {"--target"});
  ExpectRefused({"emulated", "e.json", "--samples", "0"}, {"--samples"});
  ExpectRefused({"emulated", "e.json", "--epochs", "-3"}, {"--epochs"});
}

TEST_F(Simulate, RefusesWhatItDoesNotKnowWithARemedy) {
  ExpectRefused({"poolbench", "--stream", "--trials", "5"}, {"--trials and --stream"});
  ExpectRefused({"poolbench", "--policy", "fixed", "--json", "x", "--html", "./x"},
                {"--json and --html both name", "want two files"});
  ExpectRefused({"poolbench", "--html", "nowhere/page.html"}, {"there is no folder", "nowhere"});
  ExpectRefused({"poolbench", "--pool-size", "fixed:x=1"}, {"\"fixed\" has no options"});
  ExpectRefused({"poolbench", "--policy", "promise_goodput:urgency=1,urgency=0"}, {"given twice"});
  ExpectRefused(
      {"pollux", ESPALIER_POLLUX_LOADS, "workload-1", "--policy", "pollux", "--policy", "foo"},
      {"\"foo\" is unknown"});
  ExpectRefused({"poolbench", "--slots", "9", "--nodes", "2"}, {"--slots 9", "--slots 16"});
  ExpectRefused({"poolbench", "--policy", "foo"}, {"\"foo\" is unknown", "fixed"});
  ExpectRefused({"poolbench", "--policy", "fixed:x"}, {"option \"x\"", "name=value"});
  ExpectRefused({"poolbench", "--sampler", "tpe:multivariate=maybe"},
                {"option \"multivariate\" needs true or false, got \"maybe\""});
  ExpectRefused({"poolbench", "--pruner", "asha:"}, {"nothing follows the colon"});
  ExpectRefused({"poolbench", "--rule", "cube"}, {"\"cube\"", "sqrt and linear"});
  ExpectRefused({"study", "--db", "nowhere.db"}, {"nowhere.db", "no such file"});
  ExpectRefused({"emulated", "nowhere.json"}, {"nowhere.json"});
}

TEST_F(Simulate, RecordedJobs) {
  const Outcome outcome =
      Run({"pollux", ESPALIER_POLLUX_LOADS, "workload-3", "--policy", "tiresias:share_spanned=1",
           "--policy", "optimus:share_spanned=1", "--decisions", directory_.File("log")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("workload-3: 160 jobs on 64 slots of 16 nodes"));
  EXPECT_THAT(outcome.output, HasSubstr("\ntiresias:share_spanned=1  3876 "));
  EXPECT_THAT(outcome.output, HasSubstr("\noptimus:share_spanned=1   3944 "));
  EXPECT_THAT(Text("log"), HasSubstr("slots it asks for, from queue 1"));
}

TEST_F(Simulate, RecordedJobsNameTheKnownWorkloads) {
  const Outcome outcome = Run({"pollux", ESPALIER_POLLUX_LOADS, "workload-9"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.errors, HasSubstr("known are workload-1, workload-2"));
}

}  // namespace
}  // namespace espalier
