#include "adapters/nni/service/definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json/command_words.h"
#include "tuner/study_file/study_file.h"

namespace espalier::nni {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::HasSubstr;

Definition Read(const std::string& more) {
  auto definition =
      ReadDefinition("e", R"({"command": "python3 train.py", "directory": "/code")" + more + "}");
  EXPECT_TRUE(definition.ok()) << definition.status();
  return definition.ok() ? *std::move(definition) : Definition{};
}

TEST(Definition, AnExperimentIsAStudyThatDrawsNothing) {
  const StudySpec spec = Read("").study;
  EXPECT_EQ(spec.name, "nni-e");
  EXPECT_TRUE(spec.queued());
  EXPECT_EQ(spec.directory, "/code");
  EXPECT_EQ(spec.command.back(), "python3 train.py");
  EXPECT_EQ(spec.min_slots, 1);
  EXPECT_EQ(spec.max_slots, 0);
  EXPECT_EQ(spec.pruner.name, "none");
  EXPECT_EQ(spec.batch_mode, BatchMode::kFixed);
  EXPECT_EQ(spec.direction(), Direction::kMinimize);
}

TEST(Definition, TheCommandsBracesAreItsOwn) {
  const std::string command = R"(python3 train.py '{"a": {"b": 1}}' {lr} ${HOME} {{x}})";
  const auto definition =
      ReadDefinition("e", R"({"directory": "/code", "command": )"
                          R"("python3 train.py '{\"a\": {\"b\": 1}}' {lr} ${HOME} {{x}}"})");
  ASSERT_TRUE(definition.ok()) << definition.status();
  const std::vector<std::string>& words = definition->study.command;
  EXPECT_TRUE(CheckPlaceholders(definition->study).ok());
  const auto run = FillCommand(words, {.parameters_json = R"({"lr": 1, "x": 2})"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->back(), command);
  EXPECT_EQ((*run)[2], words[2]) << "the prelude";
}

TEST(Definition, EverySettingReachesTheStudy) {
  const Definition definition = Read(R"(, "min_slots": 2, "max_slots": 4, "slots_per_gpu": 2,
      "gpus_per_trial": 3, "checkpoint_directory": "/c", "adaptive": true, "priority": 2.5,
      "environment": {"A": "b", "N": 3}, "maximize": true, "promise_assessor": true,
      "stop_grace_s": 9, "resume": true)");
  const StudySpec& spec = definition.study;
  EXPECT_EQ(spec.min_slots, 3);
  EXPECT_EQ(spec.max_slots, 4);
  EXPECT_EQ(spec.share, 2.5);
  EXPECT_EQ(spec.batch_mode, BatchMode::kAdaptive);
  EXPECT_EQ(spec.pruner.name, "promise");
  EXPECT_EQ(spec.pruner.options.at("min_steps"), 4);
  EXPECT_EQ(spec.direction(), Direction::kMaximize);
  EXPECT_EQ(spec.stop_grace_s, 9);
  EXPECT_THAT(spec.environment, ElementsAre(std::pair("A", "b"), std::pair("N", "3")));
  EXPECT_EQ(definition.slots_per_gpu, 2);
  EXPECT_EQ(CheckpointFolder(definition.canonical, "t"), "/c/t");
  EXPECT_EQ(CheckpointFolder(Read("").canonical, "t"), "");
}

TEST(Definition, ThePromiseAssessorTakesThePrunersOptions) {
  const PluginSpec pruner =
      Read(R"(, "promise_assessor": {"min_trials": 5, "min_steps": 2})").study.pruner;
  EXPECT_EQ(pruner.name, "promise");
  EXPECT_EQ(pruner.options, (Options{{"min_steps", 2}, {"min_trials", 5}}));
  EXPECT_EQ(Read(R"(, "promise_assessor": false)").study.pruner.name, "none");
  const auto refusal = [](const std::string& value) {
    return std::string(ReadDefinition("e", R"({"command": "a", "directory": "/",
        "promise_assessor": )" + value + "}")
                           .status()
                           .message());
  };
  EXPECT_THAT(refusal("3"), HasSubstr("true, false or an object of options, got 3"));
  EXPECT_THAT(refusal(R"({"min_stepz": 2})"), HasSubstr("min_stepz"));
}

TEST(Definition, WithoutGpusTheyAreHidden) {
  EXPECT_EQ(Read(R"(, "gpus_per_trial": 0)").study.environment.at("CUDA_VISIBLE_DEVICES"), "");
  EXPECT_FALSE(Read("").study.environment.contains("CUDA_VISIBLE_DEVICES"));
}

TEST(Definition, SettingsThatAreNotGivenAndResumingMakeNoOtherDefinition) {
  EXPECT_EQ(Read("").canonical, Read(R"(, "min_slots": null, "resume": true)").canonical);
  EXPECT_THAT(DifferingKeys(Read("").canonical, Read(R"(, "max_slots": 2)").canonical),
              Eq("max_slots"));
  EXPECT_THAT(DifferingKeys(Read(R"(, "priority": 1)").canonical,
                            Read(R"(, "priority": 2, "adaptive": true)").canonical),
              Eq("priority, adaptive"));
}

TEST(Definition, AMaximumBelowTheMinimumIsRaisedForGpusOnly) {
  EXPECT_EQ(Read(R"(, "max_slots": 1, "gpus_per_trial": 2)").study.max_slots, 2);
  const auto refused =
      ReadDefinition("e", R"({"command": "a", "directory": "/", "min_slots": 3, "max_slots": 2})");
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("max_slots"));
}

TEST(Definition, WhatNoStudyFileCanSayIsRefused) {
  const auto refused = ReadDefinition("e", R"({"command": "a", "directory": "/code\u0000x"})");
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("\"directory\": needs a text without zero bytes"));
}

}  // namespace
}  // namespace espalier::nni
