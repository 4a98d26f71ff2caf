#include "tuner/cli/options/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A program with a command that has an option of each kind.
class Command : public ::testing::Test {
 protected:
  Command() {
    program_.RequireCommand();
    program_.Footer("At the end.\n");
    draw_->AddFlag("--quiet", quiet_, "Say nothing");
    draw_->AddOption("-n,--count", count_, "Number of draws").Between(1, 9).ShowDefault();
    draw_->AddOption("--seed", seed_, "Where to begin");
    draw_->AddOption("--share", share_, "Part of it").NonNegative();
    draw_->AddOption("--format", format_, "What to write").OneOf({"csv", "json"});
    draw_->AddOption("--study", studies_, "May be given several times").Repeated();
    draw_->AddNumber(
        "--target", [this](double value) { target_ = value; }, "Where to end");
    draw_
        ->AddWords(
            "file", [this](const std::vector<std::string>& words) { files_ = words; }, "Files")
        .Required()
        .Values(1, 2)
        .TypeName("FILE");
  }

  absl::StatusOr<CliCommand::Outcome> Parse(std::vector<const char*> words) {
    words.insert(words.begin(), "tuner");
    return program_.Parse(static_cast<int>(words.size()), words.data());
  }

  std::string Problem(const std::vector<const char*>& words) {
    return std::string(Parse(words).status().message());
  }

  CliCommand program_{"tuner", "Draws", 0};
  CliCommand* draw_ = program_.AddCommand("draw", "Draw something");
  bool quiet_ = false;
  int count_ = 3;
  std::uint64_t seed_ = 0;
  std::optional<double> share_;
  std::string format_ = "csv";
  std::vector<std::string> studies_;
  double target_ = 0;
  std::vector<std::string> files_;
};

TEST_F(Command, FillsTheVariablesOfItsOptions) {
  const auto outcome =
      Parse({"draw", "a", "b", "--quiet", "-n", "08", "--seed", "18446744073709551615", "--share",
             "0.5", "--format", "json", "--study", "x", "--study", "y", "--target", "-2"});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(*outcome, CliCommand::Outcome::kCommand);
  EXPECT_TRUE(draw_->parsed());
  EXPECT_TRUE(quiet_);
  EXPECT_EQ(count_, 8);
  EXPECT_EQ(seed_, 18446744073709551615U);
  EXPECT_EQ(share_, 0.5);
  EXPECT_EQ(format_, "json");
  EXPECT_THAT(studies_, ElementsAre("x", "y"));
  EXPECT_EQ(target_, -2);
  EXPECT_THAT(files_, ElementsAre("a", "b"));
}

TEST_F(Command, LeavesWhatIsNotGivenAsItWas) {
  ASSERT_TRUE(Parse({"draw", "a"}).ok());
  EXPECT_EQ(count_, 3);
  EXPECT_FALSE(share_.has_value());
  EXPECT_FALSE(draw_->option("--seed").given());
  EXPECT_TRUE(draw_->option("file").given());
}

TEST_F(Command, NamesTheOptionAndWhatWouldBeRight) {
  EXPECT_EQ(Problem({"draw", "a", "-n", "10"}),
            "tuner draw: --count 10: must be a whole number from 1 to 9; see tuner draw --help");
}

TEST_F(Command, NamesTheWordsOfWhichOneMustBeGiven) {
  EXPECT_THAT(Problem({"draw", "a", "--format", "pdf"}),
              HasSubstr("--format pdf: must be one of csv, json"));
}

TEST_F(Command, TakesOnlyDecimalDigitsForANumber) {
  EXPECT_THAT(Problem({"draw", "a", "--seed", "0x10"}),
              HasSubstr("--seed 0x10: must be a whole number, 0 or more"));
}

TEST_F(Command, AsksWhetherAKnownWordWasMeant) {
  EXPECT_EQ(Problem({"drow"}),
            "tuner: unknown command \"drow\", did you mean \"draw\"? See tuner "
            "--help");
  EXPECT_EQ(program_.UnknownWord("x"), "unknown command \"x\"; the commands are draw");
}

TEST_F(Command, RefusesOptionsThatExcludeEachOther) {
  draw_->option("--seed").Excludes(draw_->option("--share"));
  EXPECT_THAT(Problem({"draw", "a", "--seed", "1", "--share", "1"}), HasSubstr("excludes"));
}

TEST_F(Command, RefusesAnOptionWithoutTheOneItNeeds) {
  draw_->option("--target").Needs(draw_->option("--quiet"));
  EXPECT_THAT(Problem({"draw", "a", "--target", "1"}), HasSubstr("--target requires --quiet"));
}

TEST_F(Command, CompletesNamesAndValues) {
  program_.AddCommand("drain", "Empty something");
  EXPECT_THAT(program_.Completions({}), ElementsAre("draw", "drain"));
  EXPECT_THAT(program_.Completions({"dra"}), ElementsAre("draw", "drain"));
  EXPECT_THAT(program_.Completions({"draw", "--s"}), ElementsAre("--seed", "--share", "--study"));
  EXPECT_THAT(program_.Completions({"draw", "--format", ""}), ElementsAre("csv", "json"));
  EXPECT_THAT(program_.Completions({"draw", "file", "--format", "j"}), ElementsAre("json"));
  EXPECT_THAT(program_.Completions({"draw", "--format", "json", "--q"}), ElementsAre("--quiet"));
  EXPECT_THAT(program_.Completions({"draw", "--quiet", "f"}), IsEmpty()) << "a file";
  EXPECT_THAT(program_.Completions({"draw", "--seed", "--"}), IsEmpty()) << "a number";
  EXPECT_THAT(program_.Completions({"unknown", "--s"}), IsEmpty());
}

TEST_F(Command, FindsItsCommandsAndTheirParent) {
  EXPECT_EQ(program_.Find("draw"), draw_);
  EXPECT_EQ(program_.Find("drop"), nullptr);
  EXPECT_EQ(draw_->parent(), &program_);
  EXPECT_EQ(program_.parent(), nullptr);
}

TEST_F(Command, ShowsDefaultsTypesAndTheFooterInItsHelpText) {
  draw_->AppendToFooter("And more.\n");
  draw_->AddOption("--hidden", format_).Group("");
  const std::string help = draw_->HelpText("tuner draw");
  EXPECT_THAT(help, HasSubstr("Usage: tuner draw"));
  EXPECT_THAT(help, HasSubstr("FILE"));
  EXPECT_THAT(help, HasSubstr("[1 - 9]=3"));
  EXPECT_THAT(help, HasSubstr("And more."));
  EXPECT_EQ(help.find("--hidden"), std::string::npos);
}

}  // namespace
}  // namespace espalier
