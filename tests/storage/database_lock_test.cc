// Who may serve a database, by whatever name, and a service whose database is taken away.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "tests/base/machine_needs.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/storage/storage.h"
#include "tuner/storage/upkeep.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class DatabaseLock : public testing::Test {
 protected:
  std::string Database() const { return folder_.File("tuner.db"); }

  std::unique_ptr<Storage> MustOpen() const {
    absl::StatusOr<std::unique_ptr<Storage>> storage = OpenSqliteStorage(Database());
    EXPECT_TRUE(storage.ok()) << storage.status();
    return storage.ok() ? *std::move(storage) : nullptr;
  }

  static std::string Refusal(const std::string& path) {
    const absl::Status status = OpenSqliteStorage(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    return std::string(status.message());
  }

  ScratchFolder folder_;
};

// What work() answers in a process of its own, which is told of locks of this one.
int InChild(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

TEST_F(DatabaseLock, RefusesASecondServiceAndNamesTheFirst) {
  const std::unique_ptr<Storage> first = MustOpen();
  const std::string owner = std::to_string(getpid());
  const auto refused = [&] {
    EXPECT_EQ(HolderOf(Database()), owner);
    EXPECT_THAT(Refusal(Database()), AllOf(HasSubstr("another tuner service has it open"),
                                           HasSubstr("(process " + owner + ")")));
    return HasFailure() ? 1 : 0;
  };
  EXPECT_EQ(InChild(refused), 0);
  const std::vector<Change> changes = {NodeRegistered{NodeId(1), "a"}};
  EXPECT_TRUE(first->Commit(changes).ok());
}

TEST_F(DatabaseLock, RefusesASecondServiceByWhateverNameItCalls) {
  const std::unique_ptr<Storage> first = MustOpen();
  std::filesystem::create_directory(folder_.File("elsewhere"));
  const std::string symbolic = folder_.File("elsewhere/symbolic.db");
  std::filesystem::create_symlink(Database(), symbolic);
  const std::string hard = folder_.File("elsewhere/hard.db");
  std::filesystem::create_hard_link(Database(), hard);
  for (const std::string& name : {symbolic, hard}) {
    EXPECT_THAT(std::string(OpenSqliteStorage(name).status().message()),
                HasSubstr("another tuner service has it open"))
        << name;
    EXPECT_TRUE(HolderOf(name).has_value()) << name;
  }
  std::filesystem::rename(Database(), folder_.File("renamed.db"));
  EXPECT_THAT(Refusal(folder_.File("renamed.db")), HasSubstr("another tuner service has it open"));
}

// In a namespace of this process alone.
int Mount(const std::string& from, const std::string& to) {
  const bool done = unshare(CLONE_NEWNS) == 0 &&
                    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) == 0;
  return done ? 0 : errno;
}

TEST_F(DatabaseLock, RefusesASecondServiceThroughAMountOfTheFile) {
  const std::unique_ptr<Storage> first = MustOpen();
  const std::string mounted = folder_.File("mounted.db");
  std::ofstream(mounted).close();
  const int error = InChild([&] { return Mount(Database(), mounted); });
  if (NotTestedHere(error == 0 ? "" : absl::StrCat("mounting: ", std::strerror(error)))) return;
  const auto refused = [&] {
    EXPECT_EQ(Mount(Database(), mounted), 0);
    EXPECT_EQ(HolderOf(mounted), std::to_string(getppid()));
    EXPECT_THAT(Refusal(mounted), HasSubstr("another tuner service has it open"));
    return HasFailure() ? 1 : 0;
  };
  EXPECT_EQ(InChild(refused), 0);
}

TEST_F(DatabaseLock, RefusesADatabaseThatAFormerReleaseHas) {
  MustOpen();
  const std::string lock = Database() + ".lock";
  std::ofstream(lock).close();
  MustOpen();  // one that was killed left it behind
  const FileDescriptor held(open(lock.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(held.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_THAT(Refusal(Database()), HasSubstr("another tuner service has it open"));
}

TEST_F(DatabaseLock, WarnsOfAFileWithSeveralNames) {
  MustOpen();
  std::filesystem::create_hard_link(Database(), folder_.File("hard.db"));
  testing::internal::CaptureStdout();
  MustOpen();
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("2 names (hard links)"));
}

// What a service finds whose database somebody has taken away, and that it acknowledges nothing.
class LostDatabase : public DatabaseLock {
 protected:
  LostDatabase() : service_(MustOpen()) {
    EXPECT_TRUE(service_->Commit(First()).ok());
    EXPECT_TRUE(service_->CheckStillThere().ok());
  }

  static std::vector<Change> First() { return {NodeRegistered{NodeId(1), "acknowledged"}}; }
  static std::vector<Change> Second() { return {NodeRegistered{NodeId(2), "refused"}}; }

  void ExpectLost(const std::string& what) {
    for (const absl::Status& status :
         {service_->CheckStillThere(), service_->Commit(Second()),
          service_->CommitSlices([] { return Second(); }), service_->CheckStillThere()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(Database()), HasSubstr(what)));
    }
  }
  // As a process that ends without closing anything: its log stays where it is.
  static void ExpectHoldsFirstAlone(const std::string& path) {
    const auto storage = OpenSqliteStorage(path, /*read_only=*/true);
    ASSERT_TRUE(storage.ok()) << storage.status();
    const auto state = (*storage)->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_THAT(state->nodes, ElementsAre(testing::Pair(NodeId(1), "acknowledged")));
  }

  std::unique_ptr<Storage> service_;
};

TEST_F(LostDatabase, ThatWasRemoved) {
  std::filesystem::remove(Database());
  ExpectLost("the file was removed while the service ran");
}

TEST_F(LostDatabase, ThatWasRemovedWithAnotherNameLeft) {
  std::filesystem::create_hard_link(Database(), folder_.File("hard.db"));
  std::filesystem::remove(Database());
  ExpectLost("renamed or moved away");
  ExpectHoldsFirstAlone(folder_.File("hard.db"));
}

TEST_F(LostDatabase, ThatWasRenamedHasWhatWasAcknowledged) {
  std::filesystem::rename(Database(), folder_.File("away.db"));
  ExpectLost("renamed or moved away while");
  ExpectHoldsFirstAlone(folder_.File("away.db"));
}

TEST_F(LostDatabase, WhoseFolderWasRenamed) {
  const std::string away = folder_.path() + "-away";
  std::filesystem::rename(folder_.path(), away);
  ExpectLost("renamed or moved away");
  std::filesystem::rename(away, folder_.path());
  ExpectHoldsFirstAlone(Database());
}

TEST_F(LostDatabase, WhoseLogWasRemovedHasWhatWasAcknowledged) {
  std::filesystem::remove(Database() + "-wal");
  ExpectLost("its log " + Database() + "-wal was removed while the service ran");
  // As after a kill: nothing is closed.
  std::filesystem::copy_file(Database(), folder_.File("killed.db"));
  ExpectHoldsFirstAlone(folder_.File("killed.db"));
}

TEST_F(LostDatabase, WhoseLogOrItsIndexWasReplacedHasWhatWasAcknowledged) {
  for (const char* beside : {"-wal", "-shm"}) {
    SCOPED_TRACE(beside);
    const std::string path = Database() + beside;
    std::filesystem::copy_file(path, path + ".new");
    std::filesystem::rename(path + ".new", path);
    ExpectLost("its log " + path + " was replaced while the service ran");
    std::filesystem::copy_file(Database(), folder_.File("killed.db"));
    ExpectHoldsFirstAlone(folder_.File("killed.db"));
    std::filesystem::remove(folder_.File("killed.db"));
    service_.reset();
    service_ = MustOpen();
  }
}

TEST_F(LostDatabase, InWhosePlaceAnotherIsLeavesThatOneAlone) {
  ASSERT_TRUE(BackUpDatabase(Database(), folder_.File("backup.db")).ok());
  const std::vector<Change> later = {NodeRegistered{NodeId(3), "after the backup"}};
  ASSERT_TRUE(service_->Commit(later).ok());
  std::filesystem::rename(folder_.File("backup.db"), Database());
  ExpectLost("another put in its place");
  ExpectHoldsFirstAlone(Database());
}

TEST_F(LostDatabase, IsNoneWhenFilesBesideItAreRemoved) {
  std::ofstream(Database() + ".lock").close();
  std::filesystem::remove(Database() + ".lock");
  EXPECT_TRUE(service_->Commit(Second()).ok());
}

}  // namespace
}  // namespace espalier
