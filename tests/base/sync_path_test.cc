#include "base/sync_path.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

namespace espalier {
namespace {

namespace fs = std::filesystem;

TEST(SyncPath, TakesFilesAndFoldersAndSaysWhatIsWrong) {
  std::string pattern = (fs::temp_directory_path() / "espalier-sync-XXXXXX").string();
  const fs::path folder = mkdtemp(pattern.data());
  std::ofstream(folder / "file") << "text";
  EXPECT_EQ(SyncPath((folder / "file").string()), 0);
  EXPECT_EQ(SyncPath(folder.string()), 0);
  EXPECT_EQ(SyncPath((folder / "absent").string()), ENOENT);
  EXPECT_EQ(SyncPath((folder / "file" / "below").string()), ENOTDIR);
  fs::remove_all(folder);
}

// Up to the root, relative names and a slash at the end as well; what is not there is no hindrance.
TEST(SyncPath, FoldersAboveEndAtTheRoot) {
  EXPECT_EQ(SyncFoldersAbove("absent/below/"), 0);
  EXPECT_EQ(SyncFoldersAbove("/"), 0);
  EXPECT_EQ(SyncFoldersAbove(""), 0);
}

}  // namespace
}  // namespace espalier
