#include "trial_runner/torch/checkpoint_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

class CheckpointFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "espalier-checkpoint-XXXXXX").string();
    folder_ = fs::path(mkdtemp(pattern.data())) / "trial";
  }
  void TearDown() override { fs::remove_all(folder_.parent_path()); }

  fs::path folder_;
};

TEST_F(CheckpointFile, HoldsTheBytesAndNothingElseIsLeft) {
  const auto path = WriteCheckpointFile(folder_.string(), 12, "content");
  ASSERT_TRUE(path.ok()) << path.status();
  std::stringstream text;
  text << std::ifstream(*path).rdbuf();
  EXPECT_EQ(text.str(), "content");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(CheckpointFile, KeepsTheNewestByStepAndLeavesOtherFilesAlone) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "notes.txt") << "mine";
  for (const int step : {5, 20, 100, 1000}) {
    ASSERT_TRUE(WriteCheckpointFile(folder_.string(), step, "x").ok());
  }
  EXPECT_TRUE(fs::exists(folder_ / "step-1000.pt"));
  EXPECT_TRUE(fs::exists(folder_ / "step-100.pt"));
  EXPECT_FALSE(fs::exists(folder_ / "step-20.pt"));
  EXPECT_FALSE(fs::exists(folder_ / "step-5.pt"));
  EXPECT_TRUE(fs::exists(folder_ / "notes.txt"));
}

TEST_F(CheckpointFile, FilesAreListedNewestFirst) {
  EXPECT_TRUE(CheckpointFiles(folder_.string()).empty());
  for (const int step : {100, 20}) {
    ASSERT_TRUE(WriteCheckpointFile(folder_.string(), step, "x").ok());
  }
  const std::vector<std::string> files = CheckpointFiles(folder_.string());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(fs::path(files[0]).filename(), "step-100.pt");
  EXPECT_EQ(fs::path(files[1]).filename(), "step-20.pt");
}

TEST_F(CheckpointFile, FolderThatCannotBeMadeIsAnErrorThatNamesIt) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "in the way";
  const auto path = WriteCheckpointFile((folder_ / "file" / "sub").string(), 1, "x");
  ASSERT_FALSE(path.ok());
  EXPECT_NE(path.status().message().find("file/sub"), absl::string_view::npos);
}

}  // namespace
}  // namespace espalier
