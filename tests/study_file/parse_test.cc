#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/storage/scratch_folder.h"
#include "tuner/core/core.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr char kSmallest[] = R"({
  "command": "./train --fast 'a b'",
  "search_space": {"lr": {"_type": "uniform", "_value": [0, 1]}},
  "trials": 3
})";

StudySpec MustParse(const std::string& json, const std::string& label = "small.json") {
  absl::StatusOr<StudySpec> spec = ParseStudy(json, label, "/home/me/work");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *std::move(spec) : StudySpec{};
}

TEST(ParseStudy, TakesDefaultsForWhatIsNotSaid) {
  const StudySpec spec = MustParse(kSmallest);
  EXPECT_EQ(spec.name, "small");
  EXPECT_EQ(spec.metric, "value");
  EXPECT_EQ(spec.direction(), Direction::kMinimize);
  EXPECT_THAT(spec.command, ElementsAre("./train", "--fast", "a b"));
  EXPECT_EQ(spec.directory, "/home/me/work");
  EXPECT_EQ(spec.sampler.name, "tpe");
  EXPECT_EQ(spec.pruner.name, "none");
  EXPECT_EQ(spec.policy.name, "promise_goodput");
  EXPECT_EQ(spec.max_trials, 3);
  EXPECT_FALSE(spec.target.has_value());
  EXPECT_EQ(spec.min_slots, 1);
  EXPECT_EQ(spec.max_slots, 0);
  EXPECT_EQ(spec.batch_mode, BatchMode::kFixed);
  EXPECT_EQ(spec.timeouts, kNoTimeouts) << "those of the pool";
}

TEST(ParseStudy, ReadsSeveralMetrics) {
  const auto with = [](const std::string& metric) {
    return std::string(R"({"command": "x", "search_space": {"a": {"_type": "uniform",)") +
           R"("_value": [0, 1]}}, "sampler": "random", "trials": 1, "metric": )" + metric + "}";
  };
  const StudySpec spec =
      MustParse(with(R"([{"name": "accuracy", "direction": "maximize"}, "latency_ms"])"));
  EXPECT_EQ(spec.metric, "accuracy");
  EXPECT_THAT(spec.other_metrics, ElementsAre("latency_ms"));
  EXPECT_THAT(spec.directions, ElementsAre(Direction::kMaximize, Direction::kMinimize));
  EXPECT_TRUE(Validate(spec).ok()) << Validate(spec);
  StudySpec rewritten = spec;
  rewritten.wording = {};
  const StudySpec again = MustParse(WriteStudy(rewritten));
  EXPECT_EQ(again.other_metrics, spec.other_metrics);
  EXPECT_EQ(again.directions, spec.directions);
  const StudySpec one = MustParse(with(R"(["loss"])"));
  EXPECT_EQ(one.metric, "loss");
  EXPECT_THAT(one.other_metrics, testing::IsEmpty());
  for (const auto& [metric, problem] : std::vector<std::pair<std::string, std::string>>{
           {"[]", "a list of 1 to 8 metrics"},
           {R"(["a", "a"])", "names that are different"},
           {R"(["a", 3])", "metrics in the list as names"},
           {R"(["a", {"direction": "minimize"}])", "metrics in the list as names"},
           {R"(["a", {"name": "b", "direction": "up"}])", "\"metric.direction\""},
           {R"(["a", {"name": "b", "from_output": "x"}])", "from_output"}}) {
    const auto refused = ParseStudy(with(metric), "x.json", "/home/me/work");
    ASSERT_FALSE(refused.ok()) << metric;
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(problem)) << metric;
  }
}

TEST(ParseStudy, ReadsConstraints) {
  const StudySpec spec = MustParse(
      R"({"command": "x", "search_space": {"a": {"_type": "uniform", "_value": [0, 1]}},
          "trials": 1, "constraints": ["latency_ms <= 20", "top-1 acc.>=-5e-1", "a<=b <= 3"]})");
  EXPECT_THAT(spec.constraints,
              ElementsAre(Constraint{"latency_ms", false, 20}, Constraint{"top-1 acc.", true, -0.5},
                          Constraint{"a<=b", false, 3}));
  EXPECT_TRUE(Validate(spec).ok()) << Validate(spec);
}

TEST(ParseStudy, ReadsEveryKey) {
  const StudySpec spec = MustParse(R"({
    "name": "all-of.it_2",
    "command": ["python3", "train.py"],
    "metric": {"name": "accuracy", "direction": "maximize"},
    "search_space": {"lr": {"_type": "uniform", "_value": [0, 1]}},
    "sampler": {"name": "tpe", "startup_trials": 6}, "pruner": "asha",
    "policy": {"name": "fixed", "slots": 2},
    "trials": 5, "time_limit_s": 90.5, "target": 0.99, "cost_limit": 12.5, "slot_price_per_hour": 2, "max_concurrent_trials": 2,
    "max_step": 30, "promise": {"best_k": 4}, "slots": {"min": 2, "max": 4}, "launch": ["accelerate", "--debug"], "batch_mode": "adaptive",
    "seed": 18446744073709551615, "max_consecutive_failures": 3, "max_restarts": 0, "stragglers": "ignore",
    "stop_grace_s": 0, "start_timeout_s": 1, "stall_timeout_s": 2.5, "pause_timeout_s": 3,
    "exit_timeout_s": 4, "drain_timeout_s": 5, "share": 0.5, "needs": {"d/x": "get x", "/y": "get y"}, "env": {"A": "x y", "B": 2, "C": 0.5},
    "preload": ["transformers", "_a.b2"], "directory": "../runs/./a"
  })");
  EXPECT_EQ(spec.name, "all-of.it_2");
  EXPECT_EQ(spec.metric, "accuracy");
  EXPECT_EQ(spec.direction(), Direction::kMaximize);
  EXPECT_THAT(spec.command, ElementsAre("python3", "train.py"));
  EXPECT_EQ(spec.sampler, (PluginSpec{"tpe", {{"startup_trials", 6}}}));
  EXPECT_EQ(spec.pruner, (PluginSpec{"asha", {}}));
  EXPECT_EQ(spec.policy, (PluginSpec{"fixed", {{"slots", 2}}}));
  EXPECT_EQ(spec.max_trials, 5);
  EXPECT_EQ(spec.time_limit_s, 90.5);
  EXPECT_EQ(spec.target, 0.99);
  EXPECT_EQ(spec.max_concurrent_trials, 2);
  EXPECT_EQ(spec.max_step, 30);
  EXPECT_EQ(spec.best_k, 4);
  EXPECT_EQ(spec.cost_limit, 12.5);
  EXPECT_EQ(spec.slot_price_per_hour, 2);
  EXPECT_EQ(spec.min_slots, 2);
  EXPECT_EQ(spec.max_slots, 4);
  EXPECT_THAT(spec.launch, ElementsAre("accelerate", "--debug"));
  EXPECT_EQ(spec.batch_mode, BatchMode::kAdaptive);
  EXPECT_EQ(spec.seed, 18446744073709551615U);
  EXPECT_EQ(spec.max_consecutive_failures, 3);
  EXPECT_EQ(spec.max_restarts, 0);
  EXPECT_FALSE(spec.replace_stragglers);
  EXPECT_EQ(spec.stop_grace_s, 0);
  EXPECT_EQ(spec.timeouts, (TrialTimeouts{1, 2.5, 3, 4, 5}));
  EXPECT_EQ(spec.share, 0.5);
  EXPECT_THAT(spec.needs, ::testing::UnorderedElementsAre(Pair(::testing::EndsWith("d/x"), "get x"),
                                                          Pair("/y", "get y")));
  EXPECT_THAT(spec.environment, ElementsAre(Pair("A", "x y"), Pair("B", "2"), Pair("C", "0.5")));
  EXPECT_THAT(*spec.preload, ElementsAre("transformers", "_a.b2"));
  EXPECT_EQ(spec.directory, "/home/me/runs/a");
}

TEST(ParseStudy, TellsWhetherProgramsInPythonAreForked) {
  std::string json(kSmallest);
  EXPECT_EQ(MustParse(json).preload, std::vector<std::string>());
  json.insert(1, R"("preload": false, )");
  EXPECT_EQ(MustParse(json).preload, std::nullopt);
}

TEST(ParseStudy, TakesOneNumberOfSlotsAsBothBounds) {
  std::string json(kSmallest);
  json.insert(1, R"("slots": 3, )");
  const StudySpec spec = MustParse(json);
  EXPECT_EQ(spec.min_slots, 3);
  EXPECT_EQ(spec.max_slots, 3);
}

TEST(ParseStudy, EndsByItselfOnAFiniteSpace) {
  EXPECT_EQ(MustParse(R"({"command": "t", "search_space":
                          {"lr": {"_type": "choice", "_value": [1, 2]}}})")
                .max_trials,
            0);
}

TEST(ParseStudy, AQueueNeedsNeitherSpaceNorEnd) {
  const StudySpec spec =
      MustParse(R"({"name": "q", "sampler": "queue", "command": "t"})", "q.json");
  EXPECT_TRUE(spec.queued());
  EXPECT_TRUE(Validate(spec).ok());
  StudySpec asked = spec;
  asked.kind = StudyKind::kByClients;
  EXPECT_FALSE(Validate(asked).ok());
  asked.kind = StudyKind::kTuned;
  EXPECT_FALSE(Validate(asked).ok()) << "its sampler is that of queued studies";
  asked.kind = StudyKind::kQueued;
  asked.sampler.name = "random";
  EXPECT_FALSE(Validate(asked).ok()) << "its sampler draws";
}

TEST(ParseStudy, TellsWhoMakesAndRunsTheTrials) {
  EXPECT_EQ(MustParse(kSmallest).kind, StudyKind::kTuned);
  EXPECT_EQ(MustParse(R"({"name": "q", "sampler": {"name": "queue"}, "command": "t"})").kind,
            StudyKind::kQueued);
  EXPECT_EQ(MustParse(R"({"name": "a", "ask_and_tell": true})").kind, StudyKind::kByClients);
  EXPECT_EQ(MustParse(R"({"name": "日本語 1", "ask_and_tell": true})").name, "日本語 1");
  EXPECT_EQ(MustParse(R"({"name": "q", "ask_and_tell": false, "sampler": "queue",
                          "command": "t"})")
                .kind,
            StudyKind::kQueued);
}

TEST(ParseStudy, WritesTextThatReadsTheSameAnywhere) {
  const StudySpec spec = MustParse(kSmallest);
  const absl::StatusOr<StudySpec> again = ParseStudy(WriteStudy(spec), "study_json", "/elsewhere");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, spec);
  EXPECT_EQ(WriteStudy(*again), WriteStudy(spec));
  EXPECT_EQ(again->name, "small");
  EXPECT_EQ(again->directory, "/home/me/work");
}

TEST(ParseStudy, WritesTheSameTextForTheSameStudyLaidOutOtherwise) {
  const StudySpec other = MustParse(
      R"({"trials":3,"search_space":{"lr":{"_value":[0,1.0],"_type":"uniform"}},
          "name":"small","command":"./train --fast 'a b'"})",
      "other.json");
  EXPECT_EQ(other, MustParse(kSmallest));
  EXPECT_EQ(WriteStudy(other), WriteStudy(MustParse(kSmallest)));
}

TEST(ParseStudy, RefusesAFolderThatNoTextCanName) {
  const absl::Status refused = ParseStudy(kSmallest, "x.json", "/broken \xff").status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("x.json: \"directory\": needs UTF-8"));
}

class ForService : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.File(name)) << text;
    return folder_.File(name);
  }

  const ScratchFolder folder_;
};

TEST_F(ForService, AFileIsHandedOverAsItIsAndNotParsed) {
  const std::string text = "{\n  \"trails\": 3, \"needs\": {\"x\": \"get x\"}}\n";
  const std::string path = Write("as_it_is.json", text);
  const std::int64_t parsed = StudyTextsParsed();
  const absl::StatusOr<StudyForService> file = ReadForService(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->json, text) << "what is wrong with it, the service says, by its lines";
  EXPECT_EQ(file->folder, folder_.path());
  EXPECT_EQ(StudyTextsParsed(), parsed);
}

TEST_F(ForService, ASearchSpaceOfAFileGoesAlong) {
  const std::string space = R"({"x": {"_type": "uniform", "_value": [0.0, 1.0]}})";
  Write("space_to_go.json", space);
  const std::string path = Write(
      "with_space.json", R"({"command": "a", "search_space": "space_to_go.json", "trials": 2})");
  const std::int64_t parsed = StudyTextsParsed();
  const absl::StatusOr<StudyForService> file = ReadForService(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(StudyTextsParsed(), parsed);
  const absl::StatusOr<StudySpec> taken =
      ParseStudy(file->json, path, file->folder, SpaceFiles::kRefused);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(*taken, *ReadStudyFile(path));
  EXPECT_EQ(WriteStudy(*taken), WriteStudy(*ReadStudyFile(path)));
}

TEST_F(ForService, WhatIsNoJsonAndASpaceThatIsNoneAreRefusedHere) {
  const std::string broken = Write("broken.json", "{\"name\": ");
  EXPECT_EQ(ReadForService(broken).status(), ReadStudyFile(broken).status());
  Write("no_space.json", "{\n\"x\": {\"_type\": \"uniform\", \"_value\": [2, 1]}}");
  const std::string path =
      Write("bad_space.json", R"({"command": "a", "search_space": "no_space.json", "trials": 2})");
  EXPECT_FALSE(ReadForService(path).ok());
  EXPECT_EQ(ReadForService(path).status(), ReadStudyFile(path).status());
}

TEST(ReadForNotes, HasWhatTheNotesGoBy) {
  const StudySpec spec = MustParse(R"({"name": "n", "command": "./train 'a b'", "metric": "loss",
      "trials": 3, "env": {"PATH": "/x"}, "directory": "runs",
      "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})");
  const std::int64_t parsed = StudyTextsParsed();
  const absl::StatusOr<StudySpec> read = ReadForNotes(WriteStudy(spec));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(StudyTextsParsed(), parsed);
  EXPECT_EQ(read->command, spec.command);
  EXPECT_EQ(read->environment, spec.environment);
  EXPECT_EQ(read->directory, "/home/me/work/runs");
  EXPECT_NE(DirectionNote(spec), "");
  EXPECT_EQ(DirectionNote(*read), DirectionNote(spec));
  EXPECT_EQ(CheckCommand(*read), CheckCommand(spec));
  EXPECT_TRUE(ReadForNotes(R"({"name": "n", "ask_and_tell": true})")->by_clients());
}

TEST(ParseStudy, TakesAJobWithoutAnythingToSearch) {
  const StudySpec spec = MustParse(R"({"command": "t", "metric": false, "trials": 1})");
  EXPECT_FALSE(spec.has_metric);
  EXPECT_TRUE(spec.space.dimensions().empty());
  EXPECT_EQ(MustParse(WriteStudy(spec)), spec);
}

TEST(ReadStudyFile, TakesFoldersAndSpacesFromWhereTheFileLies) {
  const ScratchFolder folder;
  std::ofstream(folder.File("space.json")) << R"({"x": {"_type": "choice", "_value": [1, 2]}})";
  std::ofstream(folder.File("mine.json"))
      << R"({"command": "t", "search_space": "space.json", "directory": "out"})";
  const absl::StatusOr<StudySpec> spec = ReadStudyFile(folder.File("mine.json"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "mine");
  EXPECT_EQ(spec->directory, folder.File("out"));
  ASSERT_EQ(spec->space.dimensions().size(), 1U);

  // What is stored no longer needs the second file.
  std::filesystem::remove(folder.File("space.json"));
  const absl::StatusOr<StudySpec> again = ParseStudy(WriteStudy(*spec), "x", "/");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->space.ToJson(), spec->space.ToJson());
}

}  // namespace
}  // namespace espalier
