// `tuner space`, as a process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/verbs/run_tuner.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kSpace[] = R"({
  "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
  "n": {"_type": "choice", "_value": [
    {"_name": "A", "p": {"_type": "randint", "_value": [0, 4]}}, {"_name": "B"}]},
  "width": {"_type": "choice", "_value": [8, 16]}
})";

class Space : public ::testing::Test {
 protected:
  Outcome Run(const std::string& text, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "space");
    arguments.insert(arguments.begin() + 2, directory_.Write("space.json", text));
    return RunTuner(arguments, directory_.path());
  }

  TemporaryDirectory directory_;
};

TEST_F(Space, CheckSaysWhatIsThereOrAllThatIsWrong) {
  const Outcome good = Run(kSpace, {"check"});
  EXPECT_EQ(good.exit_code, 0) << good.errors;
  EXPECT_THAT(good.output, HasSubstr("OK, 4 parameters, 1 of them in options of choices"));

  const Outcome bad = Run(R"({"a": {"_type": "uniform", "_value": [2, 1]},
    "b": {"_type": "quniform", "_value": [0, 1, 0]}})",
                          {"check"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.errors, AllOf(HasSubstr("space.json: line 1, /a: search space \"a\": uniform"),
                                HasSubstr("space.json: line 2, /b/_value/2: search space \"b\""),
                                HasSubstr("tuner space check: "), HasSubstr("2 errors")));
  EXPECT_THAT(Run("lr:\n  _type: uniform\n", {"check"}).errors,
              AllOf(HasSubstr("is not JSON"), HasSubstr("ends in .yaml or .yml")));
  EXPECT_THAT(Run("{\"x\": ", {"check"}).errors, HasSubstr("malformed JSON at line 1"));
}

TEST_F(Space, CheckTakesSeveralFiles) {
  directory_.Write("good.json", kSpace);
  const Outcome outcome = Run(R"({"a": {"_type": "uniform", "_value": [2, 1]}})",
                              {"check", "good.json", "absent.json", "good.json"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.output,
              AllOf(::testing::StartsWith("good.json: OK, "), HasSubstr("\ngood.json: OK, ")));
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("space.json: 1 error"), HasSubstr("absent.json")));
}

TEST_F(Space, CheckRefusesTwoParametersOfOneVariable) {
  const Outcome outcome = Run(R"({"x-y": {"_type": "uniform", "_value": [0, 1]},
                                  "x_y": {"_type": "uniform", "_value": [0, 1]}})",
                              {"check"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors,
              HasSubstr("\"x-y\" and \"x_y\" would both be ESPALIER_PARAM_X_Y: rename one"));
}

TEST_F(Space, ReadsTheSpaceOfAStudyFile) {
  const std::string study = std::string("{\"name\": \"s\",\n\"search_space\": ") + kSpace + "}";
  EXPECT_EQ(Run(study, {"check"}).exit_code, 0);
  EXPECT_THAT(
      Run(R"({"search_space": {"a": {"_type": "uniform", "_value": [2, 1]}}})", {"check"}).errors,
      HasSubstr("/search_space/a"));
  EXPECT_THAT(Run(R"({"search_space": "other.json"})", {"check"}).errors,
              HasSubstr("is a study whose search space is the file \"other.json\": give that one"));
}

TEST_F(Space, SampleDrawsTheSameBySeed) {
  const Outcome once = Run(kSpace, {"sample", "-n", "20", "--seed", "7"});
  EXPECT_EQ(once.exit_code, 0) << once.errors;
  EXPECT_EQ(std::count(once.output.begin(), once.output.end(), '\n'), 20);
  EXPECT_THAT(once.output, AllOf(HasSubstr("\"n\":{\"_name\":\"A\",\"p\":"),
                                 HasSubstr("\"n\":{\"_name\":\"B\"}")));
  EXPECT_EQ(once.output, Run(kSpace, {"sample", "-n", "20", "--seed", "7"}).output);
  EXPECT_NE(once.output, Run(kSpace, {"sample", "-n", "20", "--seed", "8"}).output);
  EXPECT_THAT(Run(kSpace, {"sample", "--format", "csv"}).output,
              ::testing::StartsWith("lr,n,n/A/p,width\n"));
}

TEST_F(Space, DescribeShowsATree) {
  EXPECT_THAT(Run(kSpace, {"describe"}).output, HasSubstr("  A:\n    p"));
}

TEST_F(Space, ConvertGoesBothWaysOrSaysWhyNot) {
  const Outcome nested = Run(kSpace, {"convert", "--to", "optuna"});
  EXPECT_EQ(nested.exit_code, 2);
  EXPECT_EQ(nested.output, "");
  EXPECT_THAT(nested.errors, AllOf(HasSubstr("\"n\" (choice of A, B): is a nested choice"),
                                   HasSubstr("\"n/A/p\""), HasSubstr("nothing was converted")));
  const char* plain = R"({
  "lr": {
    "_type": "loguniform",
    "_value": [
      0.0001,
      1.0
    ]
  }
})";
  const Outcome there = Run(plain, {"convert", "--to", "optuna"});
  EXPECT_EQ(there.exit_code, 0) << there.errors;
  EXPECT_THAT(there.output, HasSubstr("FloatDistribution"));
  EXPECT_EQ(Run(there.output, {"convert", "--to", "nni"}).output, std::string(plain) + "\n");
}

TEST_F(Space, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(RunTuner({"space"}, directory_.path()).exit_code, 2);
  EXPECT_EQ(Run(kSpace, {"convert", "--to", "yaml"}).exit_code, 2);
  EXPECT_EQ(Run(kSpace, {"sample", "-n", "0"}).exit_code, 2);
  EXPECT_THAT(RunTuner({"space", "check", "absent.json"}, directory_.path()).errors,
              HasSubstr("absent.json"));
}

}  // namespace
}  // namespace espalier
