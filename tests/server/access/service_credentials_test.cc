// The credentials of a service in a backup, and out of it.

#include "tuner/server/access/service_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/private_files.h"
#include "tests/base/synced_paths.h"
#include "tests/storage/scratch_folder.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Pair;

class KeptCredentials : public testing::Test {
 protected:
  KeptCredentials() {
    for (const char* name : {"certificate.pem", "key.pem", "trial.key", "join.token"}) {
      Write("pool", name, std::string("of the pool: ") + name);
    }
  }

  std::string Folder(const std::string& name) const { return folder_.File(name); }
  void Write(const std::string& folder, const std::string& name, const std::string& text) const {
    ASSERT_TRUE(MakePrivateFolders(Folder(folder)).ok());
    ASSERT_TRUE(WritePrivateFile(Folder(folder) + "/" + name, text).ok());
  }
  std::map<std::string, std::string> Files(const std::string& folder) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(Folder(folder))) {
      files[entry.path().filename().string()] = TextOfFile(entry.path().string());
    }
    return files;
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
  std::size_t Folders() const {
    const std::filesystem::directory_iterator all(folder_.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  ScratchFolder folder_;
};

TEST_F(KeptCredentials, AreInABackupForTheUserAlone) {
  const mode_t former = umask(0);
  const auto done = BackUpCredentials(Folder("pool"), Folder("backup"));
  umask(former);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_TRUE(*done);
  EXPECT_EQ(Files("backup"), Files("pool"));
  EXPECT_EQ(ModeOf(Folder("backup")), 0700);
  EXPECT_EQ(ModeOf(Folder("backup") + "/key.pem"), 0600);
  EXPECT_EQ(Folders(), 2U) << "nothing unfinished is left";
}

// Who has a token of a service has pinned its certificate, so that neither may go with its folder.
TEST_F(KeptCredentials, AreInAFolderThatIsSafeItself) {
  const std::string folder = Folder("new/tuner.db.credentials");
  // The second start cannot know whether the first one came that far.
  for (int start = 0; start < 2; ++start) {
    TakeSyncedPaths();
    ASSERT_TRUE(PrepareCredentials({.folder = folder}, /*reachable=*/true).ok());
    const std::set<std::string> synced = TakeSyncedPaths();
    for (const std::string& path : {folder, Folder("new"), folder_.path()}) {
      EXPECT_TRUE(synced.contains(path)) << path << " at start " << start;
    }
  }
}

TEST_F(KeptCredentials, MakeNoFolderForABackupBesideThemselves) {
  const absl::Status refused =
      BackUpCredentials(Folder("pool"), Folder("not-mounted/backup")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("its folder " + Folder("not-mounted") + " does not exist"));
  EXPECT_FALSE(std::filesystem::exists(Folder("not-mounted")));
}

TEST_F(KeptCredentials, OverwriteNothingAndNeedNotBeThere) {
  Write("backup", "key.pem", "precious");
  const absl::Status refused = BackUpCredentials(Folder("pool"), Folder("backup")).status();
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  EXPECT_THAT(Files("backup"), ElementsAre(Pair("key.pem", "precious")));
  const auto none = BackUpCredentials(Folder("absent"), Folder("empty"));
  EXPECT_TRUE(none.ok() && !*none);
  EXPECT_FALSE(std::filesystem::exists(Folder("empty")));
}

TEST_F(KeptCredentials, ThatAreThereStayWhenADatabaseIsRestoredButForTheKeyOfTrials) {
  ASSERT_TRUE(BackUpCredentials(Folder("pool"), Folder("backup")).ok());
  Write("pool", "certificate.pem", "a newer one");
  ASSERT_TRUE(RestoreCredentials(Folder("backup"), Folder("pool"), false).ok());
  EXPECT_THAT(Files("pool"), ElementsAre(Pair("certificate.pem", "a newer one"), Key("join.token"),
                                         Key("key.pem")));
}

TEST_F(KeptCredentials, ThatAreGoneComeFromTheBackup) {
  ASSERT_TRUE(BackUpCredentials(Folder("pool"), Folder("backup")).ok());
  std::filesystem::remove_all(Folder("pool"));
  ASSERT_TRUE(RestoreCredentials(Folder("backup"), Folder("pool"), false).ok());
  EXPECT_THAT(Files("pool"), ElementsAre(Key("certificate.pem"), Key("key.pem")));
  std::filesystem::remove_all(Folder("pool"));
  ASSERT_TRUE(RestoreCredentials(Folder("backup"), Folder("pool"), true).ok());
  EXPECT_THAT(Files("pool"),
              ElementsAre(Key("certificate.pem"), Key("join.token"), Key("key.pem")));
  EXPECT_EQ(ModeOf(Folder("pool")), 0700);
  // The backup was of a database without credentials.
  ASSERT_TRUE(RestoreCredentials(Folder("absent"), Folder("other"), false).ok());
  EXPECT_FALSE(std::filesystem::exists(Folder("other")));
}

}  // namespace
}  // namespace espalier
