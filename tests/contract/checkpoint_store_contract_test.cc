// What every CheckpointStore keeps to: the same tests for disks of the machines' own and for a
// folder that all see.

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/checkpoint_seal.h"
#include "base/checksum.h"
#include "tests/base/synced_paths.h"
#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"
#include "trial_runner/agent/checkpoints/checkpoint_server.h"
#include "trial_runner/agent/checkpoints/checkpoint_store.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Two agents: one on whose machine checkpoints are written, and one that wants them.
struct Machines {
  std::string name;
  std::function<std::unique_ptr<CheckpointStore>(const std::string& own, const std::string& common)>
      make;
};

class CheckpointStoreContract : public ::testing::TestWithParam<Machines> {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / absl::StrCat("espalier-store-", getpid());
    fs::remove_all(root_);
    const std::string common = (root_ / "common").string();
    writer_ = GetParam().make((root_ / "a").string(), common);
    reader_ = GetParam().make((root_ / "b").string(), common);
    server_ = *CheckpointServer::Open("127.0.0.1", 0, 0, [this](const CheckpointName& what) {
      return writer_->FolderOf(what.study, what.trial_number);
    });
  }
  void TearDown() override {
    server_.reset();
    fs::remove_all(root_);
  }

  void Write(const std::string& name, const std::string& text) const {
    const fs::path path = fs::path(writer_->FolderOf("a/study", 3)) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  absl::StatusOr<std::string> Obtain(const std::string& name, const std::string& fingerprint = "") {
    const CheckpointName what{"a/study", 3, name};
    server_->Allow("t", what);
    const FetchOrder order{
        7, what, fingerprint, {{"a", server_->address(), server_->certificate(), "t", ""}}};
    return reader_->Obtain(
        order, [this](double) { return ++pauses_ < 100; }, [](std::int64_t) { return true; });
  }
  // With a checksum of its own, as trials write them.
  static std::string Sealed(const std::string& text) {
    Checksum checksum;
    checksum.Add(text.data(), text.size());
    return text + TextOf(CheckpointSeal{0, checksum.value(), 0.5});
  }
  static std::string Read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  fs::path root_;
  std::unique_ptr<CheckpointStore> writer_, reader_;
  std::unique_ptr<CheckpointServer> server_;
  int pauses_ = 0;
};

TEST_P(CheckpointStoreContract, WhatOneWritesTheOtherReadsUnderTheSameName) {
  Write("step-5.pt", "learnt");
  const absl::StatusOr<std::string> path = Obtain("step-5.pt");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, reader_->FolderOf("a/study", 3) + "/step-5.pt");
  EXPECT_EQ(Read(*path), "learnt");
}

TEST_P(CheckpointStoreContract, AFolderComesAsAWhole) {
  Write("epoch", "5");
  Write("part/weights", "learnt");
  ASSERT_TRUE(Obtain("").ok());
  EXPECT_EQ(Read(reader_->FolderOf("a/study", 3) + "/part/weights"), "learnt");
}

TEST_P(CheckpointStoreContract, WhatNobodyHasIsAnErrorAndNeverAnOlderOne) {
  Write("step-4.pt", "older");
  const absl::StatusOr<std::string> path = Obtain("step-5.pt");
  EXPECT_EQ(path.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(path.status().message()),
              HasSubstr("checkpoint step-5.pt of trial 3 in study a/study"));
}

TEST_P(CheckpointStoreContract, AnotherContentOfTheNameIsAnError) {
  Write("step-5.pt", "learnt");
  const std::string fingerprint =
      ReadManifest(writer_->FolderOf("a/study", 3), "step-5.pt")->fingerprint;
  EXPECT_TRUE(Obtain("step-5.pt", fingerprint).ok());
  Write("step-5.pt", "learnt anew");
  EXPECT_TRUE(Obtain("step-5.pt").ok());
  EXPECT_EQ(Obtain("step-5.pt", fingerprint).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(CheckpointStoreContract, ADamagedOneIsSetAsideAndSaid) {
  // The tail, by which contents are told apart, stays as it is.
  const std::string long_text(10'000, 'x');
  Write("step-6.pt", Sealed(long_text));
  const std::string large = ReadManifest(writer_->FolderOf("a/study", 3), "step-6.pt")->fingerprint;
  ASSERT_TRUE(Obtain("step-6.pt", large).ok());
  const fs::path damaged = fs::path(reader_->FolderOf("a/study", 3)) / "step-6.pt";
  std::fstream(damaged, std::ios::in | std::ios::out | std::ios::binary).put('y');
  const bool fetched_elsewhere = !reader_->shared();
  const absl::StatusOr<std::string> again = Obtain("step-6.pt", large);
  EXPECT_EQ(again.ok(), fetched_elsewhere) << again.status();
  EXPECT_TRUE(fs::exists(damaged.string() + ".damaged"));
  if (fetched_elsewhere) {
    EXPECT_EQ(Read(*again), Sealed(long_text));
    return;
  }
  EXPECT_EQ(again.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(again.status().message()),
              HasSubstr("its own copy is damaged: its checksum is "));
}

TEST_P(CheckpointStoreContract, NamesOutsideTheFolderAreRefused) {
  EXPECT_FALSE(Obtain("../../secret").ok());
  EXPECT_FALSE(Obtain("/etc/hostname").ok());
}

TEST_P(CheckpointStoreContract, WhatIsThereAlreadyIsSafeBeforeItIsSaidToBeThere) {
  Write("step-5.pt", "learnt");
  const std::string fingerprint =
      ReadManifest(writer_->FolderOf("a/study", 3), "step-5.pt")->fingerprint;
  ASSERT_TRUE(Obtain("step-5.pt", fingerprint).ok());
  TakeSyncedPaths();
  const absl::StatusOr<std::string> path = Obtain("step-5.pt", fingerprint);
  ASSERT_TRUE(path.ok()) << path.status();
  const std::set<std::string> synced = TakeSyncedPaths();
  EXPECT_TRUE(synced.contains(*path) && synced.contains(fs::path(*path).parent_path().string()));
}

// It is synced where it is put in place, and not when the trial is started from it; and is not said
// to be there when it has gone.
TEST_P(CheckpointStoreContract, AnotherTrialsIsThereForAsLongAsItIs) {
  Write("step-5.pt", Sealed("learnt"));
  const std::string folder = writer_->FolderOf("a/study", 3);
  FetchOrder order{8, {"a/study", 4, "step-5.pt"}, "", {}};
  order.fingerprint = ReadManifest(folder, "step-5.pt")->fingerprint;
  const auto obtain = [&] {
    return writer_->Obtain(
        order, [](double) { return false; }, [](std::int64_t) { return true; });
  };
  order.of_trial = 3;
  ASSERT_TRUE(obtain().ok());
  order.of_trial = std::nullopt;
  TakeSyncedPaths();
  const absl::StatusOr<std::string> path = obtain();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_FALSE(TakeSyncedPaths().contains(*path));
  // The agent after this one knows nothing of that, and finds it.
  writer_ = GetParam().make((root_ / "a").string(), (root_ / "common").string());
  EXPECT_EQ(obtain().value(), *path);
  const std::set<std::string> synced = TakeSyncedPaths();
  EXPECT_TRUE(synced.contains(*path) && synced.contains(fs::path(*path).parent_path().string()));
  fs::remove(*path);
  EXPECT_FALSE(obtain().ok());
}

// Of another trial of the study: what has a checksum nobody writes to again.
TEST_P(CheckpointStoreContract, AnotherTrialsIsTheSameFileWhereItHasAChecksum) {
  Write("step-5.pt", Sealed("learnt"));
  Write("last.pt", "learnt by a program that writes it again");
  const std::string folder = writer_->FolderOf("a/study", 3);
  const auto take_over = [&](const std::string& name) {
    const std::string fingerprint = ReadManifest(folder, name)->fingerprint;
    FetchOrder order{8, {"a/study", 4, name}, fingerprint, {}};
    order.of_trial = 3;
    return writer_->Obtain(
        order, [](double) { return true; }, [](std::int64_t) { return true; });
  };
  TakeSyncedPaths();
  const absl::StatusOr<std::string> linked = take_over("step-5.pt");
  ASSERT_TRUE(linked.ok()) << linked.status();
  EXPECT_EQ(*linked, writer_->FolderOf("a/study", 4) + "/step-5.pt");
  EXPECT_TRUE(fs::equivalent(*linked, folder + "/step-5.pt"));
  EXPECT_EQ(fs::status(*linked).permissions(), fs::perms::owner_read)
      << "who wrote into it would change both";
  EXPECT_TRUE(TakeSyncedPaths().contains(fs::path(*linked).parent_path().string()));
  fs::remove(folder + "/step-5.pt");
  EXPECT_EQ(Read(*linked), Sealed("learnt")) << "though its parent has removed it";
  const absl::StatusOr<std::string> copied = take_over("last.pt");
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_FALSE(fs::equivalent(*copied, folder + "/last.pt"));
  EXPECT_EQ(Read(*copied), "learnt by a program that writes it again");
}

TEST_P(CheckpointStoreContract, ADamagedOneOfAnotherTrialIsRefused) {
  std::string text = Sealed("learnt");
  text[0] = 'L';
  Write("step-5.pt", text);
  FetchOrder order{8, {"a/study", 4, "step-5.pt"}, "", {}};
  order.of_trial = 3;
  const auto refused = writer_->Obtain(
      order, [](double) { return true; }, [](std::int64_t) { return true; });
  EXPECT_TRUE(absl::IsDataLoss(refused.status())) << refused.status();
}

INSTANTIATE_TEST_SUITE_P(
    Both, CheckpointStoreContract,
    ::testing::Values(Machines{"OwnDisks", [](const std::string& own,
                                              const std::string&) { return OwnDisk(own); }},
                      Machines{"SharedFolder",
                               [](const std::string& own, const std::string& common) {
                                 return SharedFolder(common, own);
                               }}),
    [](const auto& machines) { return machines.param.name; });

// On a machine that does not see the folder.
TEST(SharedFolders, TwoAgentsFetchTheSameAtOneTime) {
  const fs::path root = fs::temp_directory_path() / absl::StrCat("espalier-fetch-", getpid());
  fs::remove_all(root);
  const CheckpointName what{"study", 3, ""};
  const auto source = OwnDisk((root / "source").string());
  const fs::path folder = source->FolderOf(what.study, what.trial_number);
  fs::create_directories(folder);
  const std::string weights(std::size_t{32} << 20, 'w');  // many pieces
  std::ofstream(folder / "weights") << weights;
  const auto server = *CheckpointServer::Open(
      "127.0.0.1", 0, 0, [&](const CheckpointName&) { return folder.string(); });
  server->Allow("t", what);
  const FetchOrder order{7, what, "", {{"a", server->address(), server->certificate(), "t", ""}}};
  const auto no_wait = [](double) { return true; };
  const std::string common = (root / "common").string();
  const auto first = SharedFolder(common, "one");
  const auto second = SharedFolder(common, "two");
  // The second begins and ends while the first is in the middle of it.
  absl::StatusOr<std::string> other = absl::UnknownError("not asked for");
  const absl::StatusOr<std::string> path = first->Obtain(order, no_wait, [&](std::int64_t bytes) {
    if (bytes > 0 && absl::IsUnknown(other.status())) {
      other = second->Obtain(order, no_wait, [](std::int64_t) { return true; });
    }
    return true;
  });
  ASSERT_TRUE(path.ok()) << path.status();
  ASSERT_TRUE(other.ok()) << other.status();
  std::ostringstream text;
  text << std::ifstream(fs::path(*path) / "weights").rdbuf();
  EXPECT_TRUE(text.str() == weights) << text.str().size() << " bytes";
  fs::remove_all(root);
}

TEST(SharedFolders, AllWhoSeeOneReadTheSameMark) {
  const fs::path root = fs::temp_directory_path() / absl::StrCat("espalier-mark-", getpid());
  TakeSyncedPaths();
  const absl::StatusOr<std::string> first = MarkOfSharedFolder((root / "one").string());
  ASSERT_TRUE(first.ok()) << first.status();
  const std::set<std::string> synced = TakeSyncedPaths();
  EXPECT_TRUE(synced.contains(root / "one") && synced.contains(root)) << "it stays the mark";
  EXPECT_EQ(*MarkOfSharedFolder((root / "one").string()), *first);
  EXPECT_NE(*MarkOfSharedFolder((root / "two").string()), *first);
  std::ofstream(root / "file") << "in the way";
  EXPECT_THAT(std::string(MarkOfSharedFolder((root / "file").string()).status().message()),
              HasSubstr("it should be a folder that the agents of all machines can write to"));
  fs::remove_all(root);
}

}  // namespace
}  // namespace espalier
