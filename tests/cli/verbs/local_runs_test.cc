// The runs of the folder in which `tuner` is called, where no service is named.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/verbs/run_tuner.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kTaken[] = "no service answers at 127.0.0.1:7077; this is the run in ";

// A folder in which studies have been run.
class FolderOfRuns {
 public:
  FolderOfRuns() {
    std::filesystem::permissions(
        directory_.Write("trial.sh", "#!/bin/sh\necho trained\ntuner tell --value 1 --final\n"),
        std::filesystem::perms::owner_all);
  }
  Outcome Run(const std::vector<std::string>& arguments) const {
    return RunTuner(arguments, directory_.path());
  }
  // Leaves a run of this study in espalier-runs.
  Outcome RunStudy(const std::string& name) const {
    directory_.Write(name + ".json", R"({"name": ")" + name +
                                         R"(", "command": ["./trial.sh"], "trials": 1,
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})");
    return Run({"run", name + ".json", "--slots", "1", "--quiet"});
  }
  const TemporaryDirectory& directory() const { return directory_; }

 private:
  TemporaryDirectory directory_;
};

// In a folder with one run, that of the study "small".
class OnlyRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<FolderOfRuns>();
    ASSERT_EQ(folder_->RunStudy("small").exit_code, 0);
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static Outcome Run(const std::vector<std::string>& arguments) { return folder_->Run(arguments); }

  static std::unique_ptr<FolderOfRuns> folder_;
};
std::unique_ptr<FolderOfRuns> OnlyRun::folder_;

TEST_F(OnlyRun, IsTakenByEveryVerbThatReads) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"show", "small"},
                                                {"watch", "small"},
                                                {"logs", "small", "0"},
                                                {"export", "small"},
                                                {"report", "small"}}) {
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.errors, "tuner " + words[0] + ": " + kTaken + "espalier-runs/small\n");
    EXPECT_THAT(outcome.output, Not(IsEmpty()));
  }
  const Outcome unknown = Run({"show", "smal"});
  EXPECT_EQ(unknown.exit_code, 4);
  EXPECT_THAT(unknown.errors, AllOf(HasSubstr(kTaken), HasSubstr("no study \"smal\"")));
  const Outcome over = Run({"stop", "small"});
  EXPECT_EQ(over.exit_code, 3);
  EXPECT_THAT(over.errors, HasSubstr("no tuner runs in \"espalier-runs/small\""));
}

TEST_F(OnlyRun, IsNotTakenWhereAnotherSourceIsNamed) {
  const Outcome by_option = Run({"show", "small", "--service", "127.0.0.1:1"});
  EXPECT_EQ(by_option.exit_code, 3);
  EXPECT_THAT(by_option.errors, AllOf(HasSubstr("127.0.0.1:1"), Not(HasSubstr("small"))));
  const Outcome by_database = Run({"ls", "--db", "espalier-runs/small/espalier.db"});
  EXPECT_EQ(by_database.exit_code, 0);
  EXPECT_EQ(by_database.errors, "");
  EXPECT_THAT(by_database.output, Not(HasSubstr("--dir")));
  EXPECT_EQ(Run({"show", "small", "--dir", "espalier-runs/small"}).errors, "");
}

TEST_F(OnlyRun, HasAReportThatReplacesNoOtherFile) {
  EXPECT_EQ(Run({"report", "small"}).output, "report-small.html\n");
  EXPECT_EQ(Run({"report", "small"}).exit_code, 0) << "it is the same study's";
  folder_->directory().Write("report-small.html", "<title>another</title>\n");
  const Outcome refused = Run({"report", "small"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("report-small.html is there, and is no report on study"));
  EXPECT_EQ(Run({"report", "small", "--out", "report-small.html"}).exit_code, 0);
}

TEST_F(OnlyRun, IsNoMoreToldToWhoReadsNoMore) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"show", "small"},
                                                {"export", "small", "--format", "json"},
                                                {"plugins"}}) {
    const Outcome outcome = RunTunerUnread(words, folder_->directory().path());
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.errors, Not(HasSubstr("stdout"))) << words[0];
  }
}

TEST(LocalRuns, OfSeveralTheStudysIsTakenElseTheyAreNamed) {
  const FolderOfRuns folder;
  folder.RunStudy("small");
  folder.RunStudy("large");
  EXPECT_THAT(folder.Run({"show", "large"}).errors,
              HasSubstr(std::string(kTaken) + "espalier-runs/large"));
  EXPECT_THAT(folder.Run({"show", "small"}).errors,
              HasSubstr(std::string(kTaken) + "espalier-runs/small"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"show", "middle"}, {"pool"}}) {
    const Outcome outcome = folder.Run(words);
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.errors,
                AllOf(Not(HasSubstr(kTaken)),
                      HasSubstr("--dir espalier-runs/large, --dir espalier-runs/small")));
  }

  const Outcome list = folder.Run({"ls"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_THAT(list.errors, HasSubstr("these are the runs of this folder"));
  EXPECT_THAT(list.output, AllOf(HasSubstr("espalier-runs/large"), HasSubstr("espalier-runs/small"),
                                 HasSubstr("--dir")));
  EXPECT_EQ(nlohmann::json::parse(folder.Run({"ls", "--json"}).output)["studies"].size(), 2);

  std::filesystem::resize_file(folder.directory().File("espalier-runs/large/espalier.db"), 10);
  const Outcome damaged = folder.Run({"ls"});
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_THAT(damaged.errors, HasSubstr("tuner ls: espalier-runs/large: "));
  EXPECT_THAT(damaged.output, HasSubstr("espalier-runs/small"));
}

TEST(LocalRuns, LeaveTheReportOfAnotherStudyAlone) {
  const FolderOfRuns folder;
  std::filesystem::create_directories(folder.directory().File("espalier-runs/small"));
  folder.directory().Write("espalier-runs/small/report.html", "<title>another</title>\n");
  EXPECT_THAT(folder.RunStudy("small").output,
              HasSubstr("espalier-runs/small/report-small.html\n"));
}

}  // namespace
}  // namespace espalier
