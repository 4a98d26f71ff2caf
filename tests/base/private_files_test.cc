#include "base/private_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/process_start.h"
#include "tests/base/synced_paths.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PrivateFiles : public ::testing::Test {
 protected:
  PrivateFiles() : former_(umask(0)) {
    std::string pattern = (fs::temp_directory_path() / "espalier-private-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~PrivateFiles() override {
    umask(former_);
    fs::remove_all(folder_);
  }
  fs::perms ModeOf(const std::string& name) const {
    return fs::status(folder_ / name).permissions();
  }

  mode_t former_;
  fs::path folder_;
};

TEST_F(PrivateFiles, FoldersAreTheirUsersAlone) {
  fs::create_directory(folder_ / "open");
  fs::permissions(folder_ / "open", fs::perms(0755));
  ASSERT_TRUE(MakePrivateFolders((folder_ / "open/a/b/").string()).ok());
  EXPECT_EQ(ModeOf("open"), fs::perms(0755)) << "not ours to close";
  EXPECT_EQ(ModeOf("open/a"), fs::perms(0700));
  EXPECT_EQ(ModeOf("open/a/b"), fs::perms(0700));
  EXPECT_TRUE(MakePrivateFolders((folder_ / "open/a/b").string()).ok());
}

TEST_F(PrivateFiles, AFileInTheWayIsNamed) {
  std::ofstream(folder_ / "file") << "x";
  const absl::Status made = MakePrivateFolders((folder_ / "file/below").string());
  EXPECT_THAT(std::string(made.message()),
              HasSubstr("cannot write " + (folder_ / "file").string()));
  EXPECT_FALSE(MakePrivateFolders((folder_ / "file").string()).ok());
}

TEST_F(PrivateFiles, AFilesOldModeIsNotKept) {
  const std::string path = (folder_ / "file").string();
  for (const char* name : {"file", "file.new"}) {
    std::ofstream(folder_ / name) << "old";
    fs::permissions(folder_ / name, fs::perms(0666));
  }
  ASSERT_TRUE(WritePrivateFile(path, "new").ok());
  EXPECT_EQ(ModeOf("file"), fs::perms(0600));
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "new");
  EXPECT_FALSE(fs::exists(folder_ / "file.new"));
  EXPECT_FALSE(WritePrivateFile((folder_ / "absent/file").string(), "").ok());
}

TEST_F(PrivateFiles, KeepsAFileUnderItsName) {
  for (const char* text : {"first", "second"}) {
    ASSERT_TRUE(KeepPrivateFile((folder_ / "key").string(), text).ok());
    EXPECT_EQ(TextOfFile((folder_ / "key").string()), text);
    EXPECT_EQ(ModeOf("key"), fs::perms(0600));
    EXPECT_FALSE(fs::exists(folder_ / "key.new"));
  }
  EXPECT_FALSE(KeepPrivateFile((folder_ / "absent/key").string(), "").ok());
}

// A folder whose name is not safe takes its files with it.
TEST_F(PrivateFiles, KeptFoldersAreSyncedUpToTheRoot) {
  TakeSyncedPaths();
  ASSERT_TRUE(KeepPrivateFolders((folder_ / "a/b/c").string()).ok());
  EXPECT_EQ(ModeOf("a/b/c"), fs::perms(0700));
  const std::set<std::string> synced = TakeSyncedPaths();
  for (const fs::path& above : {folder_ / "a/b", folder_ / "a", folder_, fs::path("/")}) {
    EXPECT_TRUE(synced.contains(above.string())) << above;
  }
  std::ofstream(folder_ / "file") << "x";
  EXPECT_FALSE(KeepPrivateFolders((folder_ / "file/below").string()).ok());
}

// As are files of /proc whose process has gone since they were opened.
TEST_F(PrivateFiles, WhatCanBeOpenedAndNotReadIsEmpty) {
  EXPECT_EQ(TextOfFile("/proc/self/mem"), "");
  EXPECT_EQ(TextOfFile(folder_.string()), "");
  EXPECT_EQ(TextOfFile((folder_ / "absent").string()), "");
  std::ofstream(folder_ / "file", std::ios::binary) << std::string("a\0b\n", 4);
  EXPECT_EQ(TextOfFile((folder_ / "file").string()), std::string("a\0b\n", 4));
}

TEST(ProcessStart, IsThatOfALivingProcess) {
  EXPECT_FALSE(ProcessStart(getpid()).empty());
  EXPECT_EQ(ProcessStart(getpid()), ProcessStart(getpid()));
  EXPECT_EQ(ProcessStart(0), "");
}

}  // namespace
}  // namespace espalier
