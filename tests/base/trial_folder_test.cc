#include "tuner/base/trial_folder.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

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
}

}  // namespace
}  // namespace espalier
