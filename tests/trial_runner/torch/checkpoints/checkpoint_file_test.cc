#include "trial_runner/torch/checkpoints/checkpoint_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>

#include "base/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TEST(Checksum, IsCrc64Xz) {
  Checksum whole;
  whole.Add("123456789", 9);
  EXPECT_EQ(whole.value(), 0x995DC9BBDF1939FAu);
  Checksum pieces;
  pieces.Add("1", 1);
  pieces.Add("23456", 5);
  pieces.Add("789", 3);
  EXPECT_EQ(pieces.value(), whole.value());
}

class CheckpointFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "espalier-checkpoint-XXXXXX").string();
    folder_ = fs::path(mkdtemp(pattern.data())) / "trial";
  }
  void TearDown() override { fs::remove_all(folder_.parent_path()); }

  // The bytes, and the end of a zip archive without files: the least that can be sealed.
  static CheckpointContent Archive(const std::string& bytes) {
    return [bytes](const ByteSink& sink) {
      const std::string archive = bytes + std::string("PK\005\006", 4) + std::string(18, '\0');
      const std::size_t half = archive.size() / 2;
      sink(archive.data(), half);
      sink(archive.data() + half, archive.size() - half);
      return absl::OkStatus();
    };
  }

  absl::StatusOr<std::string> Write(std::int64_t step, const std::string& bytes = "x",
                                    std::optional<double> value = std::nullopt,
                                    BetterValue better = BetterValue::kUnknown) {
    return WriteCheckpointFile({folder_.string(), step, value, better}, Archive(bytes));
  }

  std::string PathOf(std::int64_t step) const {
    return (folder_ / ("step-" + std::to_string(step) + ".pt")).string();
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  static std::string ErrorOf(const std::string& path) {
    const absl::Status verified = VerifyCheckpointFile(path);
    EXPECT_FALSE(verified.ok());
    EXPECT_THAT(std::string(verified.message()), HasSubstr(path));
    return std::string(verified.message());
  }

  fs::path folder_;
};

TEST_F(CheckpointFileTest, TellsWhatIsSafeOnTheDiskWhileItIsWritten) {
  std::vector<std::int64_t> synced;
  CheckpointFile file{folder_.string(), 5};
  file.synced = [&synced](std::int64_t bytes) { synced.push_back(bytes); };
  std::string large;
  large.resize(200'000'000, 'x');
  const auto path = WriteCheckpointFile(file, Archive(large));
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_GE(synced.size(), 3u);
  EXPECT_EQ(std::accumulate(synced.begin(), synced.end(), std::int64_t{0}),
            static_cast<std::int64_t>(fs::file_size(*path)));
}

TEST_F(CheckpointFileTest, HoldsTheContentAndNothingElseIsLeft) {
  // Short, at the writer's buffer and beyond it.
  for (const std::size_t size : {std::size_t{7}, std::size_t{1 << 20}, std::size_t{5'000'001}}) {
    const std::string bytes(size, 'c');
    const auto path = Write(12, bytes);
    ASSERT_TRUE(path.ok()) << path.status();
    std::stringstream text;
    text << std::ifstream(*path).rdbuf();
    EXPECT_TRUE(text.str().starts_with(bytes + "PK\005\006"));
    EXPECT_TRUE(VerifyCheckpointFile(*path).ok());
    EXPECT_THAT(Names(), UnorderedElementsAre("step-12.pt"));
  }
}

TEST_F(CheckpointFileTest, SeveralMayWriteOneStepAtOnce) {
  absl::StatusOr<std::string> inner;
  const auto outer =
      WriteCheckpointFile({.folder = folder_.string(), .step = 4}, [&](const ByteSink& sink) {
        inner = Write(4, std::string(3'000'000, 'i'));
        return Archive(std::string(2'000'000, 'o'))(sink);
      });
  ASSERT_TRUE(inner.ok()) << inner.status();
  ASSERT_TRUE(outer.ok()) << outer.status();
  EXPECT_EQ(*inner, *outer);
  const absl::Status whole = VerifyCheckpointFile(*outer);
  EXPECT_TRUE(whole.ok()) << whole;
  EXPECT_THAT(Names(), UnorderedElementsAre("step-4.pt"));
}

TEST_F(CheckpointFileTest, IsForItsUserAlone) {
  const mode_t former = umask(0);
  const auto path = Write(12);
  umask(former);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(fs::status(*path).permissions(), fs::perms(0600));
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms(0700));
}

TEST_F(CheckpointFileTest, KeepsTheNewestByStepAndLeavesOtherFilesAlone) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "notes.txt") << "mine";
  for (const int step : {5, 20, 100, 1000}) ASSERT_TRUE(Write(step).ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("step-1000.pt", "step-100.pt", "notes.txt"));
}

TEST_F(CheckpointFileTest, WhatAnEarlierRunLeftDoesNotCount) {
  for (const int step : {55, 66, 11, 22, 33}) ASSERT_TRUE(Write(step).ok());
  EXPECT_THAT(Names(),
              UnorderedElementsAre("step-22.pt", "step-33.pt", "step-55.pt", "step-66.pt"));
  ASSERT_TRUE(Write(77).ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("step-66.pt", "step-77.pt"));
}

TEST_F(CheckpointFileTest, KeepsTheBestBesideTheNewest) {
  const std::vector<double> values{3, 1, 2, std::numeric_limits<double>::quiet_NaN(), 5, 4};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i) + 1;
    ASSERT_TRUE(Write(step, "x", values[i], BetterValue::kSmaller).ok());
  }
  EXPECT_THAT(Names(), UnorderedElementsAre("step-2.pt", "step-5.pt", "step-6.pt"));
  ASSERT_TRUE(Write(7, "x", 0.5, BetterValue::kSmaller).ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("step-6.pt", "step-7.pt"));
}

TEST_F(CheckpointFileTest, LargerIsBetterWhereTheStudySaysSo) {
  for (const int step : {1, 2, 3, 4}) {
    ASSERT_TRUE(Write(step, "x", 10.0 - step, BetterValue::kLarger).ok());
  }
  EXPECT_THAT(Names(), UnorderedElementsAre("step-1.pt", "step-3.pt", "step-4.pt"));
}

TEST_F(CheckpointFileTest, FilesAreListedNewestFirst) {
  EXPECT_TRUE(CheckpointFiles(folder_.string()).empty());
  for (const int step : {100, 20}) ASSERT_TRUE(Write(step).ok());
  EXPECT_THAT(CheckpointFiles(folder_.string()), ::testing::ElementsAre(PathOf(100), PathOf(20)));
}

TEST_F(CheckpointFileTest, RemovesWhatKilledWritersLeft) {
  ASSERT_TRUE(Write(10).ok());
  std::ofstream(folder_ / "step-9.pt.4711.tmp") << "half a che";
  std::ofstream(folder_ / "step-12.pt.4712.tmp") << "another's, which may be under way";
  ASSERT_TRUE(Write(11).ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("step-10.pt", "step-11.pt", "step-12.pt.4712.tmp"));
}

TEST_F(CheckpointFileTest, FlippedByteIsFoundWhereverItIs) {
  const std::string path = *Write(1, std::string(3'000'000, 'c'));
  const auto size = static_cast<std::int64_t>(fs::file_size(path));
  for (const std::int64_t at : {std::int64_t{0}, size / 2, size - 70}) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 0x10));
    file.close();
    EXPECT_THAT(ErrorOf(path), HasSubstr("is damaged")) << at;
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(at).put(byte);
    EXPECT_TRUE(VerifyCheckpointFile(path).ok());
  }
}

TEST_F(CheckpointFileTest, CutOffForeignAndMissingFilesAreErrorsThatSayWhy) {
  const std::string path = *Write(1, std::string(100'000, 'c'));
  fs::resize_file(path, 50'000);
  EXPECT_THAT(ErrorOf(path), HasSubstr("cut off"));
  fs::resize_file(path, 0);
  EXPECT_THAT(ErrorOf(path), HasSubstr("cut off"));
  std::ofstream(path) << "a letter to my aunt, long enough to be taken for a checkpoint, or so";
  EXPECT_THAT(ErrorOf(path), HasSubstr("no checksum at its end"));
  EXPECT_THAT(ErrorOf(PathOf(7)), HasSubstr("No such file"));
}

TEST_F(CheckpointFileTest, FolderInThePlaceOfAFileIsAnErrorThatNamesOneInIt) {
  fs::create_directories(folder_);
  EXPECT_THAT(ErrorOf(folder_.string()), HasSubstr("is a folder, and it has no checkpoint in it"));
  for (const int step : {9, 10}) ASSERT_TRUE(Write(step).ok());
  EXPECT_THAT(ErrorOf(folder_.string()),
              HasSubstr("is a folder: want a file in it, such as " + PathOf(10)));
}

TEST_F(CheckpointFileTest, FolderThatCannotBeMadeIsAnErrorThatNamesIt) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "in the way";
  const auto path =
      WriteCheckpointFile({.folder = (folder_ / "file" / "sub").string(), .step = 1}, Archive("x"));
  ASSERT_FALSE(path.ok());
  EXPECT_THAT(std::string(path.status().message()), HasSubstr("file/sub"));
}

TEST_F(CheckpointFileTest, ContentThatIsNoArchiveIsRefused) {
  const auto path =
      WriteCheckpointFile({.folder = folder_.string(), .step = 1}, [](const ByteSink& sink) {
        sink("plain text", 10);
        return absl::OkStatus();
      });
  EXPECT_EQ(path.status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(Names().empty());
}

// A limit on the size of files stands for a full disk: write() fails in mid-file in the same way.
TEST_F(CheckpointFileTest, FileThatFindsNoRoomLeavesTheOneBeforeAndNothingElse) {
  ASSERT_TRUE(Write(1, std::string(1000, 'c')).ok());
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 2'000'000;
  const auto former = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto path = Write(2, std::string(5'000'000, 'c'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, former);
  ASSERT_FALSE(path.ok());
  EXPECT_THAT(std::string(path.status().message()), HasSubstr("cannot write: File too large"));
  EXPECT_THAT(Names(), UnorderedElementsAre("step-1.pt"));
  EXPECT_TRUE(VerifyCheckpointFile(PathOf(1)).ok());
}

}  // namespace
}  // namespace espalier
