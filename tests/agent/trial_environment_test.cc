#include "trial_runner/agent/trial_environment.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(FolderName, StaysOneFolder) {
  EXPECT_EQ(FolderName("fashion mnist-2.1"), "fashion mnist-2.1");
  EXPECT_EQ(FolderName("../a/b"), "%2E.%2Fa%2Fb");
  EXPECT_EQ(FolderName(".."), "%2E.");
  EXPECT_NE(FolderName("a%2Fb"), FolderName("a/b"));
}

TEST(ParameterVariable, IsUpperCaseWithUnderscores) {
  EXPECT_EQ(ParameterVariable("conv1/lr.base"), "ESPALIER_PARAM_CONV1_LR_BASE");
}

TEST(TrialEnvironment, YieldsToThreadsTheUserSet) {
  AgentOptions options;
  options.tuner_executable = "/opt/espalier/tuner";
  v1::StartReplica start;
  start.set_parameters_json(R"({"lr": 0.1, "rule": "adascale", "deep": true})");
  (*start.mutable_environment())["OMP_NUM_THREADS"] = "7";
  const auto variables =
      TrialEnvironment({{"PATH", "/bin"}, {"ESPALIER_CHECKPOINT", "stale"}}, options, 3, start, {});
  ASSERT_TRUE(variables.ok()) << variables.status();
  EXPECT_EQ(variables->at("OMP_NUM_THREADS"), "7");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_LR"), "0.1");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_RULE"), "adascale");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_DEEP"), "true");
  EXPECT_EQ(variables->at("ESPALIER_NODE_ID"), "3");
  EXPECT_EQ(variables->at("PATH"), "/opt/espalier:/bin");
  EXPECT_FALSE(variables->contains("ESPALIER_CHECKPOINT"));
}

TEST(TrialEnvironment, FlattensNestedChoices) {
  v1::StartReplica start;
  start.set_parameters_json(
      R"({"opt": {"_name": "sgd", "momentum": 0.9, "decay": {"_name": "none"}}, "list": [1]})");
  const auto variables = TrialEnvironment({}, {}, 1, start, {});
  ASSERT_TRUE(variables.ok()) << variables.status();
  EXPECT_EQ(variables->at("ESPALIER_PARAM_OPT"), "sgd");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_OPT_SGD_MOMENTUM"), "0.9");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_OPT_SGD_DECAY"), "none");
  EXPECT_EQ(variables->at("ESPALIER_PARAM_LIST"), "[1]");
}

TEST(TrialEnvironment, RefusesParametersThatAreNotAnObject) {
  v1::StartReplica start;
  start.set_parameters_json("[1]");
  const auto variables = TrialEnvironment({}, {}, 1, start, {});
  EXPECT_EQ(variables.status().message(),
            "cannot start the trial: its parameters should be one JSON object, got [1]");
}

}  // namespace
}  // namespace espalier
