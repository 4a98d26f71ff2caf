#include "base/json/command_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kParameters[] =
    R"({"lr": 1e-05, "batch": 64.0, "layers": 3, "name": "a b{layers}", "amp": true, "nesterov": false,
        "none": null, "sizes": [64, 32], "wide": 1e30,
        "optimizer": {"_name": "sgd", "momentum": 0.9}})";

const TrialOfCommand kTrial = {.parameters_json = kParameters,
                               .study = "mnist",
                               .number = 7,
                               .seed = 49,
                               .folder = "/pool/mnist/trial-7",
                               .checkpoints = "/shared/checkpoints"};

// The words after the first.
std::vector<std::string> Filled(std::vector<std::string> words) {
  words.insert(words.begin(), "train");
  auto filled = FillCommand(words, kTrial);
  EXPECT_TRUE(filled.ok()) << filled.status();
  if (!filled.ok() || filled->empty()) return {};
  EXPECT_EQ(filled->front(), "train");
  return {filled->begin() + 1, filled->end()};
}

std::string WordRefusal(const std::string& word) {
  return std::string(FillCommand({"train", word}, kTrial).status().message());
}

TEST(FillCommand, PutsValuesWhereTheirNamesAre) {
  EXPECT_THAT(Filled({"--lr", "{lr}", "--layers={layers}", "x{layers}y{lr}z"}),
              ElementsAre("--lr", "1e-05", "--layers=3", "x3y1e-05z"));
  EXPECT_THAT(Filled({"{optimizer}", "{optimizer/sgd/momentum}"}), ElementsAre("sgd", "0.9"));
}

TEST(FillCommand, NamesTheTrialItself) {
  EXPECT_THAT(Filled({"{trial}", "{study}", "{seed}", "{trial_dir}/out", "{checkpoint_dir}"}),
              ElementsAre("7", "mnist", "49", "/pool/mnist/trial-7/out", "/shared/checkpoints"));
  // A parameter of that name comes first.
  TrialOfCommand seeded = kTrial;
  seeded.parameters_json = R"({"seed": 5})";
  EXPECT_EQ((*FillCommand({"t", "{seed}"}, seeded))[1], "5");
  // Where folders are not known, as in what people are shown.
  seeded.folder = {};
  EXPECT_EQ((*FillCommand({"t", "{trial_dir}"}, seeded))[1], "{trial_dir}");
}

TEST(FillCommand, WritesWholeNumbersWithoutAFractionAndOtherValuesAsJson) {
  EXPECT_THAT(Filled({"{batch}", "{wide}", "{amp}", "{nesterov}", "{sizes}"}),
              ElementsAre("64", "1e+30", "true", "false", "[64,32]"));
}

TEST(FillCommand, ReplacesOnceAndSplitsNothing) {
  EXPECT_THAT(Filled({"{name}"}), ElementsAre("a b{layers}"));
}

TEST(FillCommand, LeavesAllOtherBracesAsTheyAre) {
  for (const char* word : {R"({"a": 1})", R"({"a": {"b": {"c": [1]}}})", "{}", "{a,b}", "{1..5}",
                           "{0}", "{ lr }", "{ ls; }", "${lr}", "${HOME}/x", "{", "}", "a{b", "a}b",
                           "{print $1}", R"(if(x){print $1; if(y){next;}})"}) {
    EXPECT_THAT(Filled({word}), ElementsAre(word));
  }
  EXPECT_THAT(Filled({R"({"lr":{lr},"model":{"layers":{layers}}})"}),
              ElementsAre(R"({"lr":1e-05,"model":{"layers":3}})"));
}

TEST(FillCommand, TakesDoubledBracesForBraces) {
  EXPECT_THAT(Filled({"{{lr}}", "{{", "}}", "{{}}", "{{{lr}}}", R"({{"a": {"b": 1}}})", "{{ x }}"}),
              ElementsAre("{lr}", "{", "}", "{}", "{1e-05}", R"({"a": {"b": 1}})", "{ x }"));
}

TEST(FillCommand, LeavesTheProgramAsItIs) {
  EXPECT_EQ((*FillCommand({"{lr}/{{"}, kTrial))[0], "{lr}/{{");
  EXPECT_TRUE(FillCommand({}, kTrial)->empty());
}

TEST(FillCommand, HasFlagsForTrueOnly) {
  EXPECT_THAT(Filled({"{amp?--amp}", "{nesterov?--nesterov}", "{none?--none}", "{amp?--a {lr}}"}),
              ElementsAre("--amp", "--a {lr}"));
  EXPECT_THAT(WordRefusal("{layers?--deep}"), HasSubstr("needs true or false, layers is 3"));
}

TEST(FillCommand, LeavesOutWhatTheTrialDoesNotHaveWithItsOption) {
  EXPECT_THAT(Filled({"--lr", "{lr}", "--beta", "{optimizer/adam/beta}", "-v", "x"}),
              ElementsAre("--lr", "1e-05", "-v", "x"));
  EXPECT_THAT(Filled({"optimizer.beta={optimizer/adam/beta}", "--beta={optimizer/adam/beta}"}),
              ElementsAre());
  EXPECT_THAT(Filled({"--none", "{none}", "--", "{none}", "{lr}", "{none}"}),
              ElementsAre("--", "1e-05"));
  EXPECT_THAT(Filled({"{optimizer/adam/amsgrad?--amsgrad}"}), ElementsAre());
}

TEST(FillCommand, RefusesNamesThatTheTrialCannotHave) {
  EXPECT_THAT(
      WordRefusal("--lr={lrr}"),
      HasSubstr(R"(command: "--lr={lrr}": the trial has no parameter "lrr", it has amp, )"));
  EXPECT_THAT(WordRefusal("{print}"), HasSubstr("write {{print}}"));
  // Of the option that it has.
  EXPECT_THAT(WordRefusal("{optimizer/sgd/momentun}"), HasSubstr("no parameter"));
  EXPECT_THAT(WordRefusal("{layers/3/x}"), HasSubstr("no parameter"));
}

TEST(FillCommand, RefusesWhatNoArgumentCanHold) {
  TrialOfCommand trial = kTrial;
  trial.parameters_json = R"({"x": "a\u0000b"})";
  EXPECT_THAT(FillCommand({"t", "{x}"}, trial).status().message(), HasSubstr("zero byte"));
  trial.parameters_json = "[1]";
  EXPECT_THAT(FillCommand({"t"}, trial).status().message(), HasSubstr("one JSON object, got [1]"));
}

TEST(LiteralWord, MeansItself) {
  for (const char* word :
       {"{lr}", "${HOME}", R"({"a": {"b": 1}})", "}}{{", "{amp?--x}", "}{", "plain"}) {
    EXPECT_TRUE(PlaceholdersOf(LiteralWord(word)).empty()) << word;
    EXPECT_THAT(Filled({LiteralWord(word)}), ElementsAre(word));
  }
}

TEST(PlaceholdersOf, TellsNamesAndFlags) {
  const std::vector<Placeholder> names = PlaceholdersOf("a{x}b{y/z/k}{{w}}${v}");
  ASSERT_EQ(names.size(), 2U);
  EXPECT_EQ(names[0].Text(), "{x}");
  EXPECT_EQ(names[1].name, "y/z/k");
  EXPECT_TRUE(PlaceholdersOf("{amp?--amp}").front().is_flag);
  EXPECT_TRUE(IsPlaceholderName("größe"));
  EXPECT_FALSE(IsPlaceholderName("learning rate"));
  EXPECT_FALSE(IsPlaceholderName("2nd"));
}

}  // namespace
}  // namespace espalier
