#include "trial_runner/agent/checkpoints/checkpoint_readers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transfer.pb.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

class CheckpointReadersTest : public ::testing::Test {
 protected:
  CheckpointReadersTest() {
    std::string name = (fs::temp_directory_path() / "readers-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    std::ofstream(folder_ / "step-7.pt") << std::string(3 * kCheckpointPieceBytes, 'x');
    request_.set_study("mnist");
    request_.set_trial_number(2);
    request_.set_name("step-7.pt");
  }
  ~CheckpointReadersTest() override { fs::remove_all(folder_); }

  absl::Status Read(const std::string& ticket, std::int64_t* bytes = nullptr) {
    return readers_.Read("Bearer " + ticket, request_, [bytes](const v1::CheckpointPiece& piece) {
      if (bytes != nullptr) *bytes += static_cast<std::int64_t>(piece.bytes().size());
      return true;
    });
  }

  fs::path folder_;
  v1::ReadCheckpoint request_;
  CheckpointReaders readers_{[this](const CheckpointName&) { return folder_.string(); }};
};

TEST_F(CheckpointReadersTest, EachThatShowsATicketIsSentTheWholeBesideOthers) {
  std::atomic<int> whole = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kMaxCheckpointReaders; ++i) {
    threads.emplace_back([&, ticket = absl::StrCat("ticket-", i)] {
      readers_.Allow(ticket, {"mnist", 2, "step-7.pt"});
      for (int round = 0; round < 5; ++round) {
        std::int64_t bytes = 0;
        EXPECT_EQ(Read(ticket, &bytes), absl::OkStatus());
        if (bytes == 3 * static_cast<std::int64_t>(kCheckpointPieceBytes)) ++whole;
        EXPECT_TRUE(absl::IsUnauthenticated(Read("another")));
        readers_.busy();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(whole, 5 * kMaxCheckpointReaders);
  EXPECT_FALSE(readers_.busy());
}

TEST_F(CheckpointReadersTest, AReaderThatLeavesMakesRoomForTheNext) {
  readers_.Allow("ticket", {"mnist", 2, "step-7.pt"});
  const absl::Status left =
      readers_.Read("Bearer ticket", request_, [](const v1::CheckpointPiece&) { return false; });
  EXPECT_TRUE(absl::IsCancelled(left)) << left;
  EXPECT_EQ(Read("ticket"), absl::OkStatus());
}

}  // namespace
}  // namespace espalier
