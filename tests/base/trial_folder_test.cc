#include "base/trial_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace espalier {
namespace {

namespace fs = std::filesystem;

TEST(FolderName, StaysOneFolder) {
  EXPECT_EQ(FolderName("fashion mnist-2.1"), "fashion mnist-2.1");
  EXPECT_EQ(FolderName("../a/b"), "%2E.%2Fa%2Fb");
  EXPECT_EQ(FolderName(".."), "%2E.");
  EXPECT_NE(FolderName("a%2Fb"), FolderName("a/b"));
}

TEST(FolderName, IsReadBack) {
  for (const char* study : {"fashion mnist-2.1", "../a/b", "..", "50%", "", "a%2Fb"}) {
    EXPECT_EQ(StudyOfFolder(FolderName(study)), study);
  }
}

TEST(TrialFolder, LiesInTheFolderOfItsStudy) {
  EXPECT_EQ(TrialFolder("/trials", "../a/b", 7), "/trials/%2E.%2Fa%2Fb/trial-7");
  EXPECT_EQ(TrialNumberOf("trial-7"), 7);
  EXPECT_EQ(TrialNumberOf("trial-x"), std::nullopt);
  EXPECT_EQ(TrialNumberOf("checkpoints"), std::nullopt);
  EXPECT_EQ(TrialNumberOf("trial-7.old-1-2"), std::nullopt);
}

class ClaimedFolder : public ::testing::Test {
 protected:
  ClaimedFolder() {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  ~ClaimedFolder() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return (directory_ / "s" / name).string(); }
  std::string Claim(const TrialName& trial) const {
    const absl::StatusOr<std::string> moved = ClaimTrialFolder(directory_.string(), trial);
    EXPECT_TRUE(moved.ok()) << moved.status();
    return moved.value_or("");
  }
  std::string Find(const TrialName& trial) const {
    return FindTrialFolder(directory_.string(), trial);
  }
  void Write(const std::string& name) const { std::ofstream(Path(name)) << name; }

  const fs::path directory_ =
      fs::temp_directory_path() / ("claimed_folder_test_" + std::to_string(getpid()));
  const TrialName first_{"s", "1-100", 7};
  const TrialName second_{"s", "1-200", 7};
};

TEST_F(ClaimedFolder, AnotherStudyOfThatNameFindsAnEmptyOne) {
  EXPECT_EQ(Claim(first_), "");
  Write("trial-7/log");
  EXPECT_EQ(Claim(second_), Path("trial-7.old-1-100"));
  EXPECT_FALSE(fs::exists(Path("trial-7/log")));
  EXPECT_EQ(Find(second_), Path("trial-7"));
  EXPECT_EQ(Find(first_), Path("trial-7.old-1-100"));
  EXPECT_TRUE(fs::exists(Find(first_) + "/log"));
}

TEST_F(ClaimedFolder, AStudyThatComesBackHasItsOwnAgain) {
  Claim(first_);
  Write("trial-7/log");
  EXPECT_EQ(Claim(first_), "");
  EXPECT_TRUE(fs::exists(Path("trial-7/log")));
  Claim(second_);
  Write("trial-7/other");
  EXPECT_EQ(Claim(first_), Path("trial-7.old-1-200"));
  EXPECT_TRUE(fs::exists(Path("trial-7/log")));
  EXPECT_FALSE(fs::exists(Path("trial-7/other")));
  EXPECT_FALSE(fs::exists(Path("trial-7.old-1-100")));
  EXPECT_EQ(Find(second_), Path("trial-7.old-1-200"));
}

TEST_F(ClaimedFolder, OneOfAnEarlierReleaseBelongsToTheNextStudy) {
  fs::create_directories(Path("trial-7"));
  Write("trial-7/log");
  EXPECT_EQ(Find(second_), Path("trial-7"));
  EXPECT_EQ(Claim(second_), "");
  EXPECT_TRUE(fs::exists(Path("trial-7/log")));
  EXPECT_EQ(Find(first_), Path("trial-7.old-1-100"));
}

TEST_F(ClaimedFolder, WithoutAnIdentityNothingIsTouched) {
  Claim(first_);
  EXPECT_EQ(Claim({"s", "", 7}), "");
  EXPECT_EQ(Find({"s", "", 7}), Path("trial-7"));
  EXPECT_EQ(Claim(first_), "");
}

// As a loss of power may leave a file that was just made, or nothing of it.
TEST_F(ClaimedFolder, AMarkOfZerosMovesNothingAway) {
  for (const std::size_t zeros : {0U, 1U, 5U}) {
    Claim(first_);
    Write("trial-7/checkpoint");
    std::ofstream(Path("trial-7/.study"), std::ios::binary) << std::string(zeros, '\0');
    EXPECT_EQ(Find(first_), Path("trial-7"));
    EXPECT_EQ(Claim(first_), "");
    EXPECT_TRUE(fs::exists(Path("trial-7/checkpoint")));
  }
  EXPECT_EQ(Claim(second_), Path("trial-7.old-1-100")) << "it bears its mark again";
}

TEST_F(ClaimedFolder, OneThatCannotBeMovedIsNamed) {
  Claim(first_);
  fs::create_directories(Path("trial-7.old-1-100/in the way"));
  const auto refused = ClaimTrialFolder(directory_.string(), second_);
  EXPECT_EQ(refused.status().message(),
            "the folder " + Path("trial-7") +
                " is another study's of that name, and cannot be moved to " +
                Path("trial-7.old-1-100") + " (Directory not empty): move it away");
}

TEST_F(ClaimedFolder, IsRemovedWhereNothingElseIsInIt) {
  Claim(first_);
  Write("trial-7/log");
  RemoveEmptyTrialFolder(Path("trial-7"));
  EXPECT_EQ(Claim(first_), "");
  EXPECT_TRUE(fs::exists(Path("trial-7/log")));
  fs::remove(Path("trial-7/log"));
  RemoveEmptyTrialFolder(Path("trial-7"));
  EXPECT_FALSE(fs::exists(directory_ / "s"));
}

}  // namespace
}  // namespace espalier
