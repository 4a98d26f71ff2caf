#include "base/folder_entries.h"

#include <dirent.h>
#include <dlfcn.h>

#include <cerrno>
#include <fstream>
#include <set>

#include "base/trial_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

thread_local bool disk_fails = false;

}  // namespace

// In the place of the C library's, which the standard library calls.
extern "C" dirent* readdir(DIR* folder) {
  static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  dirent* entry = real(folder);
  if (entry == nullptr || !disk_fails || std::string_view(entry->d_name) != "last") return entry;
  errno = EIO;
  return nullptr;
}

namespace espalier {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

std::set<std::string> NamesIn(const std::vector<fs::directory_entry>& entries,
                              const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : entries) names.insert(entry.path().lexically_relative(folder).string());
  return names;
}

TEST(FolderEntries, AreThoseOfTheFolderOrAllBelowIt) {
  const fs::path folder = fs::path(testing::TempDir()) / "espalier_entries";
  fs::remove_all(folder);
  fs::create_directories(folder / "b" / "c");
  std::ofstream(folder / "a") << "1";
  std::ofstream(folder / "b" / "c" / "d") << "2";
  fs::create_directory_symlink(folder, folder / "b" / "up");
  std::error_code error;
  EXPECT_THAT(NamesIn(FolderEntries(folder, error), folder), ElementsAre("a", "b"));
  EXPECT_FALSE(error);
  EXPECT_THAT(NamesIn(EntriesBelow(folder, error), folder),
              ElementsAre("a", "b", "b/c", "b/c/d", "b/up"));
  EXPECT_FALSE(error);
  // What is removed while one looks at what there was does no harm.
  for (const auto& entry : EntriesBelow(folder, error)) fs::remove_all(entry.path());
  EXPECT_THAT(FolderEntries(folder, error), IsEmpty());
}

TEST(FolderEntries, SayWhatCannotBeRead) {
  std::error_code error;
  EXPECT_THAT(FolderEntries("/nowhere/at/all", error), IsEmpty());
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  EXPECT_THAT(EntriesBelow("/dev/null", error), IsEmpty());
  EXPECT_EQ(error, std::errc::not_a_directory);
}

TEST(FolderEntries, ThrowNothingWhereTheDiskFails) {
  const fs::path folder = fs::path(testing::TempDir()) / "espalier_entries_unread";
  fs::remove_all(folder);
  fs::create_directories(folder / "last");
  std::error_code error;
  disk_fails = true;
  EXPECT_THAT(FolderEntries(folder, error), IsEmpty());
  EXPECT_EQ(error, std::errc::io_error);
  EXPECT_THAT(EntriesBelow(folder, error), IsEmpty());
  EXPECT_EQ(error, std::errc::io_error);
  // What may not be empty stays.
  RemoveEmptyTrialFolder(folder.string());
  disk_fails = false;
  EXPECT_TRUE(fs::exists(folder / "last"));
}

}  // namespace
}  // namespace espalier
