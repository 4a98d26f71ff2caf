#include "base/synced_folders.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <string>

#include "base/sync_path.h"
#include "tests/base/synced_paths.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

class SyncedFoldersTest : public ::testing::Test {
 protected:
  SyncedFoldersTest() {
    std::string pattern = (fs::temp_directory_path() / "espalier-synced-XXXXXX").string();
    folder_ = fs::canonical(mkdtemp(pattern.data()));
    fs::create_directories(folder_ / "a/b");
  }
  ~SyncedFoldersTest() override { fs::remove_all(folder_); }

  std::set<std::string> Above(const fs::path& path) {
    TakeSyncedPaths();
    EXPECT_EQ(folders_.SyncAbove(path.string()), 0);
    return TakeSyncedPaths();
  }

  fs::path folder_;
  SyncedFolders folders_;
};

TEST_F(SyncedFoldersTest, SyncsWhatSyncFoldersAboveDoesAndThenNoMore) {
  const std::set<std::string> first = Above(folder_ / "a/b");
  TakeSyncedPaths();
  EXPECT_EQ(SyncFoldersAbove((folder_ / "a/b").string()), 0);
  EXPECT_EQ(first, TakeSyncedPaths());
  EXPECT_TRUE(Above(folder_ / "a/b").empty());
  fs::create_directories(folder_ / "a/c");
  EXPECT_EQ(Above(folder_ / "a/c"), std::set<std::string>({(folder_ / "a").string()}));
}

TEST_F(SyncedFoldersTest, WhatIsMadeAnewOrMovedIsAnotherFolder) {
  Above(folder_ / "a/b");
  fs::rename(folder_ / "a/b", folder_ / "a/old");
  fs::create_directories(folder_ / "a/b");
  EXPECT_TRUE(Above(folder_ / "a/b").contains((folder_ / "a").string()));
  EXPECT_TRUE(Above(folder_ / "a/old").contains((folder_ / "a").string()));
}

TEST_F(SyncedFoldersTest, WhatCouldNotBeSyncedIsSyncedTheNextTime) {
  FailSyncOf((folder_ / "a").string());
  EXPECT_EQ(folders_.SyncAbove((folder_ / "a/b").string()), EIO);
  EXPECT_EQ(Above(folder_ / "a/b"), std::set<std::string>({(folder_ / "a").string()}));
}

}  // namespace
}  // namespace espalier
