#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tuner/core/core.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kNamedSpace[] = R"({"lr": {"_type": "uniform", "_value": [0, 1]},
  "amp": {"_type": "choice", "_value": [true, false]},
  "learning rate": {"_type": "uniform", "_value": [0, 1]},
  "optimizer": {"_type": "choice", "_value": [
    {"_name": "sgd", "momentum": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "adam"}]}})";

absl::Status CheckNames(const std::string& command,
                        const std::string& rest = absl::StrCat(R"("trials": 3, "search_space": )",
                                                               kNamedSpace)) {
  const auto spec = ParseStudy(
      absl::StrCat(R"({"name": "s", "command": )", command, ", ", rest, "}"), "s", "/home/me");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? CheckPlaceholders(*spec) : spec.status();
}

std::string CommandRefusal(const std::string& command) {
  return std::string(CheckNames(command).message());
}

TEST(ParameterNote, NamesWhatTheCommandForgets) {
  const auto note = [](const std::string& command, const std::string& metric) {
    const auto spec = ParseStudy(
        absl::StrCat(R"({"name": "s", "command": )", command, R"(, "trials": 3, "metric": )",
                     metric, R"(, "search_space": )", kNamedSpace, "}"),
        "s", "/home/me");
    EXPECT_TRUE(spec.ok()) << spec.status();
    return spec.ok() ? ParameterNote(*spec) : "";
  };
  constexpr char kReads[] = R"json({"name": "loss", "from_output": "(.*)"})json";
  EXPECT_THAT(note(R"(["t", "{lr}", "{optimizer/sgd/momentum}"])", kReads),
              StartsWith(R"(no word of "command" has "amp", "learning rate" in braces)"));
  EXPECT_EQ(note(R"(["t", "--amp"])", kReads), "") << "it may read them all from its environment";
  EXPECT_EQ(note(R"(["sh", "-c", "t --lr $ESPALIER_PARAM_LR $1", "sh", "{amp}"])", kReads), "");
  EXPECT_EQ(note(R"(["t", "{lr}"])", R"("loss")"), "") << "programs with the library tell it";
}

TEST(CheckPlaceholders, KnowsParametersByTheirPathAndTheTrial) {
  EXPECT_TRUE(
      CheckNames(R"(["t", "{lr}", "{optimizer}", "{optimizer/sgd/momentum}", "{amp?--amp}"])")
          .ok());
  EXPECT_TRUE(CheckNames(R"(["t", "{trial}{study}{seed}{trial_dir}{checkpoint_dir}"])").ok());
  EXPECT_TRUE(CheckNames(R"("t --lr {lr} '{\"a\": 1}' {} {{print}}")").ok());
  EXPECT_TRUE(CheckNames(R"(["sh", "-c", "echo ${HOME} $1", "sh", "{lr}"])").ok());
}

TEST(CheckPlaceholders, ProposesTheNearestName) {
  EXPECT_THAT(
      CommandRefusal(R"("t --lr={lrr}")"),
      AllOf(
          StartsWith(R"("command": "--lr={lrr}": there is no parameter "lrr", did you mean {lr}?)"),
          HasSubstr("Known: lr, amp, learning rate, optimizer, optimizer/sgd/momentum, trial, "),
          HasSubstr("write {{lrr}}")));
  EXPECT_THAT(CommandRefusal(R"(["t", "{momentum}"])"),
              HasSubstr(R"(there is no parameter "momentum"; Known)"));
  EXPECT_THAT(CommandRefusal(R"(["t", "{ampp?--amp}"])"), HasSubstr("did you mean {amp}?"));
}

TEST(CheckPlaceholders, RefusesAFlagOfWhatIsNeitherTrueNorFalse) {
  EXPECT_THAT(
      CommandRefusal(R"(["t", "{lr?--fast}"])"),
      HasSubstr(R"({NAME?WORD} is for a choice of true and false, "lr" is another uniform)"));
  EXPECT_THAT(CommandRefusal(R"(["t", "{trial?--fast}"])"), HasSubstr("\"trial\" is no parameter"));
}

TEST(CheckPlaceholders, RefusesANameThatCannotBeInBraces) {
  EXPECT_THAT(CommandRefusal(R"(["t", "--lr={learning rate}"])"),
              HasSubstr("got \"learning rate\""));
}

TEST(CheckPlaceholders, LeavesAQueueWithoutASpaceItsParameters) {
  EXPECT_TRUE(CheckNames(R"(["t", "{anything}"])", R"("sampler": "queue")").ok());
}

TEST(MetricFromOutput, IsReadAndWritten) {
  const std::string text = absl::StrCat(
      R"({"name": "s", "command": "t", "trials": 3, "search_space": )", kNamedSpace,
      R"x(, "metric": {"name": "loss", "from_output": "loss=(.*)", "step": "Epoch (\\d+)"}})x");
  const auto spec = ParseStudy(text, "s", "/home/me");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->from_output, (MetricPatterns{"loss=(.*)", "Epoch (\\d+)"}));
  EXPECT_EQ(spec->direction(), Direction::kMinimize);
  StudySpec unworded = *spec;
  unworded.wording = {};
  const auto again = ParseStudy(WriteStudy(unworded), "s", "/home/me");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *spec);
}

std::string MetricRefusal(const std::string& metric,
                          const std::string& rest = R"("command": "t", "trials": 3)") {
  return std::string(ParseStudy(absl::StrCat(R"({"name": "s", "search_space": )", kNamedSpace,
                                             R"(, "metric": )", metric, ", ", rest, "}"),
                                "s", "/home/me")
                         .status()
                         .message());
}

TEST(MetricFromOutput, HasAGroupForEachFigureThatTheStudyNeeds) {
  const std::string two =
      R"x([{"name": "loss", "from_output": "loss=(.*) ms=(?P<ms>.*) mb=(?P<mb>.*)"}, "ms"])x";
  const auto with = [](const std::string& metric, const std::string& constraints) {
    return absl::StrCat(
        R"({"name": "s", "command": "t", "trials": 3, "search_space": )", kNamedSpace,
        R"(, "metric": )", metric, R"(, "constraints": )", constraints, "}");
  };
  const auto spec = ParseStudy(with(two, R"(["mb <= 3"])"), "s", "/home/me");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(Validate(*spec).ok()) << Validate(*spec);
  StudySpec unworded = *spec;
  unworded.wording = {};
  const auto again = ParseStudy(WriteStudy(unworded), "s", "/home/me");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *spec);
  const auto refusal = [&](const std::string& metric, const std::string& constraints) {
    return std::string(ParseStudy(with(metric, constraints), "s", "/").status().message());
  };
  EXPECT_THAT(refusal(two, R"(["gb <= 3"])"), HasSubstr("needs a group for \"gb\""));
  EXPECT_THAT(refusal(R"x(["ms", {"name": "loss", "from_output": "(.*)"}])x", "[]"),
              HasSubstr("from_output"))
      << "only of the first";
  EXPECT_THAT(refusal(R"x({"from_output": ""})x", "[]"), HasSubstr("that is not empty"));
}

TEST(MetricFromOutput, IsRefusedInRe2sWords) {
  EXPECT_EQ(
      MetricRefusal(R"x({"from_output": "loss=([0-9"})x"),
      R"x(s: "metric.from_output": needs a pattern (RE2): missing ]: [0-9, got "loss=([0-9")x");
  EXPECT_THAT(MetricRefusal(R"x({"from_output": "loss="})x"),
              HasSubstr("needs one group, for the value"));
  EXPECT_THAT(MetricRefusal(R"x({"from_output": 3})x"), HasSubstr("\"metric.from_output\": needs"));
  EXPECT_THAT(MetricRefusal(R"x({"from_output": "a(.)", "step": "b"})x"),
              HasSubstr("\"step\": needs one group"));
  EXPECT_THAT(MetricRefusal(R"x({"step": "(b)"})x"),
              HasSubstr("is for \"from_output\", which is missing"));
  EXPECT_THAT(MetricRefusal(R"x({"from_output": "a(.)"})x", R"("ask_and_tell": true)"),
              HasSubstr("is for trials that the pool runs"));
}

TEST(MetricFromFiles, IsReadAndWritten) {
  const std::pair<const char*, MetricFiles> kRows[] = {
      {R"({"from_file": {"path": "out/log.jsonl", "value": "eval.loss", "step": "epoch"}})",
       {"out/log.jsonl", "eval.loss", "epoch", ""}},
      {R"({"from_file": {"path": "{trial_dir}/{lr}.jsonl", "value": "loss"}})",
       {"{trial_dir}/{lr}.jsonl", "loss", "", ""}},
      {R"({"from_tensorboard": {"folder": "runs", "tag": "val/loss"}})",
       {"runs", "", "", "val/loss"}},
      {R"({"from_tensorboard": {"tag": "val/loss"}})", {".", "", "", "val/loss"}}};
  for (const auto& [metric, expected] : kRows) {
    const auto spec =
        ParseStudy(absl::StrCat(R"({"name": "s", "command": "t", "trials": 3, "search_space": )",
                                kNamedSpace, R"(, "metric": )", metric, "}"),
                   "s", "/home/me");
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->from_files, expected) << metric;
    EXPECT_TRUE(CheckPlaceholders(*spec).ok()) << CheckPlaceholders(*spec);
    StudySpec unworded = *spec;
    unworded.wording = {};
    const auto again = ParseStudy(WriteStudy(unworded), "s", "/home/me");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, *spec);
  }
}

TEST(MetricFromFiles, IsRefusedInItsWords) {
  const std::pair<const char*, const char*> kRows[] = {
      {R"({"from_file": "log.jsonl"})", "\"metric.from_file\": needs {\"path\": ..., "},
      {R"({"from_file": {"path": "log.jsonl"}})", "\"metric.from_file\": needs \"value\", got {"},
      {R"({"from_file": {"value": "loss"}})", "\"metric.from_file\": needs \"path\", got {"},
      {R"({"from_file": {"path": "", "value": "loss"}})", "\"metric.from_file.path\": needs"},
      {R"({"from_file": {"path": "a", "value": 3}})", "\"metric.from_file.value\": needs"},
      {R"({"from_file": {"path": "a", "value": "b", "key": "c"}})", "key"},
      {R"({"from_tensorboard": {"folder": "runs"}})",
       "\"metric.from_tensorboard\": needs \"tag\", got {"},
      {R"x({"from_tensorboard": {"tag": "a"}, "from_output": "b(.)"})x",
       "has values from one place, got \"from_output\" and \"from_tensorboard\""},
      {R"({"from_file": {"path": "a", "value": "b"}, "step": "c"})",
       "is for \"from_output\", which is missing"}};
  for (const auto& [metric, refusal] : kRows) {
    EXPECT_THAT(MetricRefusal(metric), HasSubstr(refusal)) << metric;
  }
  EXPECT_THAT(MetricRefusal(R"({"from_tensorboard": {"tag": "a"}})", R"("ask_and_tell": true)"),
              HasSubstr("is for trials that the pool runs"));
  const auto spec = ParseStudy(
      absl::StrCat(R"({"name": "s", "command": "t", "trials": 3, "search_space": )", kNamedSpace,
                   R"(, "metric": {"from_file": {"path": "{lrr}/log", )", R"("value": "loss"}}})"),
      "s", "/home/me");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(std::string(CheckPlaceholders(*spec).message()),
              HasSubstr("\"metric\": \"{lrr}/log\": there is no parameter \"lrr\""));
}

TEST(ThePageOnExistingScripts, HasStudyFilesThatAreAccepted) {
  std::ostringstream page;
  page << std::ifstream(SCRIPTS_PAGE).rdbuf();
  const std::vector<std::string> blocks = absl::StrSplit(page.str(), "```json\n");
  ASSERT_GE(blocks.size(), 7U);
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    const std::string text = blocks[i].substr(0, blocks[i].find("```"));
    const auto spec = ParseStudy(text, "page", "/home/me");
    ASSERT_TRUE(spec.ok()) << spec.status() << "\n" << text;
    EXPECT_TRUE(CheckPlaceholders(*spec).ok()) << CheckPlaceholders(*spec) << "\n" << text;
  }
}

}  // namespace
}  // namespace espalier
