#include "tuner/cli/views/first_study.h"

#include <deque>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Held {
  absl::StatusOr<std::string> study;
  std::vector<std::string> said;
};

// With these answers, and no others.
Held Talk(std::deque<std::string> answers) {
  std::vector<std::string> said;
  absl::StatusOr<std::string> study =
      AskForStudy({.ask = [&](const std::string& question,
                              const std::string& suggested) -> absl::StatusOr<std::string> {
                     if (answers.empty()) return absl::OutOfRangeError("no answer: " + question);
                     const std::string answer = answers.front();
                     answers.pop_front();
                     return answer.empty() ? suggested : answer;
                   },
                   .say =
                       [&](const std::string& line) {
                         if (!line.empty()) said.push_back(line);
                       }});
  EXPECT_THAT(answers, IsEmpty()) << "all are asked for";
  return {std::move(study), said};
}

StudySpec Parsed(const Held& held) {
  EXPECT_TRUE(held.study.ok()) << held.study.status();
  const auto spec = ParseStudy(held.study.value_or(""), "study.json", "/");
  EXPECT_TRUE(spec.ok()) << spec.status() << *held.study;
  EXPECT_TRUE(CheckPlaceholders(*spec).ok());
  return *spec;
}

TEST(FirstStudy, NeedsNothingButTheCommand) {
  const Held held = Talk({"python3 train.py", "", "", "", "", "", "", "", "", ""});
  const StudySpec spec = Parsed(held);
  EXPECT_THAT(held.said, IsEmpty());
  EXPECT_THAT(spec.command, ElementsAre("python3", "train.py", "--lr", "{lr}"));
  EXPECT_THAT(*held.study, HasSubstr(R"("lr": {"_type": "loguniform", "_value": [0.0001, 0.1]})"));
  EXPECT_THAT(
      *held.study,
      HasSubstr(R"json("name": "loss", "direction": "minimize", "from_output": "loss=()json"));
  EXPECT_EQ(spec.max_trials, 20);
}

TEST(FirstStudy, HasAPlaceForEachParameter) {
  const Held held = Talk({"sh -c 'train {width}' {width}",
                          "width",
                          "16, 32,64",  // is in it already
                          "layers",
                          "1 to 9",
                          "yes",
                          "no",
                          "model.layers={layers}",  //
                          "units",
                          "8 1024",
                          "yes",
                          "yes",
                          "-",  // asks for it
                          "dropout",
                          "0 0.5",
                          "--dropout={dropout}",  //
                          "amp",
                          "true, false",
                          "",  //
                          "optimizer",
                          "adam, sgd",
                          "",
                          "-",  //
                          "val_acc",
                          "",
                          "epoch 3: val_acc VALUE%",
                          "7"});
  const StudySpec spec = Parsed(held);
  EXPECT_THAT(held.said, IsEmpty());
  EXPECT_THAT(spec.command,
              ElementsAre("sh", "-c", "train {width}", "{width}", "model.layers={layers}",
                          "--dropout={dropout}", "{amp?--amp}", "--optimizer", "{optimizer}"));
  EXPECT_THAT(*held.study, HasSubstr(R"("width": {"_type": "choice", "_value": [16, 32, 64]})"));
  EXPECT_THAT(*held.study, HasSubstr(R"("layers": {"_type": "randint", "_value": [1, 10]})"));
  EXPECT_THAT(*held.study,
              HasSubstr(R"("units": {"_type": "qloguniform", "_value": [8, 1024, 1]})"));
  EXPECT_THAT(*held.study, HasSubstr(R"("dropout": {"_type": "uniform", "_value": [0, 0.5]})"));
  EXPECT_THAT(*held.study, HasSubstr(R"("amp": {"_type": "choice", "_value": [true, false]})"));
  EXPECT_THAT(*held.study,
              HasSubstr(R"("optimizer": {"_type": "choice", "_value": ["adam", "sgd"]})"));
  EXPECT_THAT(*held.study, HasSubstr(R"("direction": "maximize")"));
  EXPECT_EQ(spec.max_trials, 7);
}

TEST(FirstStudy, AsksAgainForWhatIsNoAnswer) {
  const Held held = Talk({"",
                          "train | tee log",
                          "'open",
                          "train",  //
                          "learning rate",
                          "lr",
                          "0.1",
                          "1 1",
                          "2 to 1",
                          "a b",
                          ",",
                          "1e-3 1",
                          "perhaps",
                          "y",
                          "--lr",
                          "--lr 'x",
                          "-",  //
                          "lr",
                          "-",  //
                          "loss",
                          "maybe",
                          "no",
                          "loss=",
                          "VALUE VALUE",
                          "-",  //
                          "0",
                          "-1",
                          "1.5",
                          "many",
                          "3"});
  const StudySpec spec = Parsed(held);
  EXPECT_THAT(spec.command, ElementsAre("train"));
  EXPECT_EQ(spec.max_trials, 3);
  EXPECT_EQ(held.said.size(), 3U + 1 + 5 + 1 + 2 + 1 + 1 + 2 + 4);
  EXPECT_THAT(held.said, Contains("needs {lr}, where its value goes"));
  EXPECT_THAT(held.said, Contains("needs another name: this one has been told"));
}

TEST(FirstStudy, EndsWithTheAnswers) {
  EXPECT_EQ(Talk({}).study.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Talk({"train", "lr"}).study.status().code(), absl::StatusCode::kOutOfRange);
}

TEST(FirstStudy, MakesAPatternOfALine) {
  const std::string number =
      R"(([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?(?i:nan|inf(?:inity)?)))";
  EXPECT_EQ(PatternOfLine("val_loss=VALUE"), R"(val_loss=)" + number);
  EXPECT_EQ(PatternOfLine("[2/3]  loss (mean) VALUE\tdone."),
            R"(\[[-+.\w]+/[-+.\w]+\]\s+loss\s+\(mean\)\s+)" + number + R"(\s+done\.)");
  EXPECT_EQ(PatternOfLine("epoch 3, lr 1e-04 f1_2d=VALUE (0.4s)."),
            R"(epoch\s+[-+.\w]+,\s+lr\s+[-+.\w]+\s+f1_2d=)" + number + R"(\s+\([-+.\w]+\)\.)")
      << "other numbers are others in other lines";
  EXPECT_EQ(PatternOfLine("12VALUE"), R"([-+.\w]+)" + number);
  EXPECT_EQ(PatternOfLine("2d_loss -0.5: VALUE"), R"(2d_loss\s+[-+.\w]+:\s+)" + number);
  EXPECT_EQ(PatternOfLine("Verlust \u00fc: VALUE"), "Verlust\\s+\u00fc:\\s+" + number);
  EXPECT_EQ(PatternOfLine("no value"), "");
  EXPECT_EQ(PatternOfLine("VALUE and VALUE"), "");
}

}  // namespace
}  // namespace espalier
