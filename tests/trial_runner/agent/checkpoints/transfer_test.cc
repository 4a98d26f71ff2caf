// Agents' checkpoints over real sockets: a server on one side, a fetch on the other.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/checkpoint_seal.h"
#include "base/checksum.h"
#include "base/file_descriptor.h"
#include "tests/base/synced_paths.h"
#include "transfer.grpc.pb.h"
#include "trial_runner/agent/checkpoints/checkpoint_fetch.h"
#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"
#include "trial_runner/agent/checkpoints/checkpoint_server.h"
#include "tuner/credentials/certificate.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kPieces = 40;

class TransferTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / absl::StrCat("espalier-transfer-", getpid());
    fs::remove_all(root_);
    holder_ = (root_ / "a" / "trial-2" / "checkpoints").string();
    mine_ = (root_ / "b" / "trial-2" / "checkpoints").string();
    fs::create_directories(holder_);
    server_ = Open(holder_);
  }
  void TearDown() override {
    server_.reset();
    fs::remove_all(root_);
  }

  static std::unique_ptr<CheckpointServer> Open(const std::string& folder) {
    auto server = CheckpointServer::Open("127.0.0.1", 0, 0,
                                         [folder](const CheckpointName&) { return folder; });
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  static void Write(const fs::path& path, const std::string& bytes) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static std::string Read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  // A checkpoint of many pieces, no two of which are alike.
  static std::string Large() {
    std::string bytes;
    for (int i = 0; i < kPieces; ++i) {
      bytes += std::string(kCheckpointPieceBytes, static_cast<char>('A' + i));
    }
    return bytes;
  }

  static CheckpointSource SourceAt(CheckpointServer& server, const CheckpointName& what,
                                   const std::string& node = "a") {
    server.Allow("the-ticket", what);
    return {node, server.address(), server.certificate(), "the-ticket", ""};
  }
  FetchOrder OrderFor(const std::string& name) {
    const CheckpointName what{"mnist", 2, name};
    return {31, what, "", {SourceAt(*server_, what)}};
  }
  absl::Status Fetch(const FetchOrder& order, FetchLimits limits = {}) {
    limits.first_pause_s = 0.001;
    return FetchCheckpoint(
        order, mine_, limits, [this](double) { return ++pauses_ < most_pauses_; },
        [this](std::int64_t bytes) {
          received_ = bytes;
          if (on_bytes_) on_bytes_();
          return true;
        });
  }

  fs::path root_;
  std::string holder_, mine_;
  std::unique_ptr<CheckpointServer> server_;
  std::int64_t received_ = 0;
  std::function<void()> on_bytes_;
  int pauses_ = 0;
  int most_pauses_ = 100;
};

TEST_F(TransferTest, FetchesAFileForItsOwnerAlone) {
  Write(holder_ + "/step-7.pt", Large());
  ASSERT_EQ(Fetch(OrderFor("step-7.pt")), absl::OkStatus());
  EXPECT_EQ(Read(mine_ + "/step-7.pt"), Large());
  struct stat status {};
  ASSERT_EQ(stat((mine_ + "/step-7.pt").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(stat(mine_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  EXPECT_FALSE(fs::exists(root_ / "b/trial-2/incoming"));
}

TEST_F(TransferTest, FetchesAFolderAsItIs) {
  Write(holder_ + "/epoch", "12");
  Write(holder_ + "/weights/part-1", Large());
  Write(holder_ + "/weights/empty", "");
  Write(holder_ + "/half.tmp", "under way");
  Write(mine_ + "/epoch", "9");
  Write(mine_ + "/of-epoch-9", "old");
  ASSERT_EQ(Fetch(OrderFor("")), absl::OkStatus());
  EXPECT_EQ(Read(mine_ + "/epoch"), "12");
  EXPECT_EQ(Read(mine_ + "/weights/part-1"), Large());
  EXPECT_TRUE(fs::exists(mine_ + "/weights/empty"));
  EXPECT_FALSE(fs::exists(mine_ + "/of-epoch-9"));
  EXPECT_FALSE(fs::exists(mine_ + "/half.tmp"));
}

// Names that are not synced may be gone after a loss of power, and with them a part of what came.
TEST_F(TransferTest, AllNamesOfAFolderAreSafeBeforeItIsThere) {
  Write(holder_ + "/weights/part-1", "learnt");
  Write(holder_ + "/epoch", "12");
  const fs::path staging = root_ / "b/trial-2/incoming" / ReadManifest(holder_, "")->fingerprint;
  TakeSyncedPaths();
  ASSERT_EQ(Fetch(OrderFor("")), absl::OkStatus());
  const std::set<std::string> synced = TakeSyncedPaths();
  for (const fs::path& path : {staging, staging / "weights", staging / "epoch",
                               staging / "weights/part-1", root_ / "b/trial-2", root_ / "b"}) {
    EXPECT_TRUE(synced.contains(path.string())) << path;
  }
}

// The folder of the trial's own machine, and thus its names, may be new without anybody's notice.
TEST_F(TransferTest, TheFoldersAboveAFileAreSafeAlsoWhereOthersMadeThem) {
  Write(holder_ + "/step-7.pt", "learnt");
  fs::create_directories(mine_);
  TakeSyncedPaths();
  ASSERT_EQ(Fetch(OrderFor("step-7.pt")), absl::OkStatus());
  const std::set<std::string> synced = TakeSyncedPaths();
  for (const fs::path& path : {fs::path(mine_), root_ / "b/trial-2", root_ / "b", root_}) {
    EXPECT_TRUE(synced.contains(path.string())) << path;
  }
}

TEST_F(TransferTest, AFolderThatIsReplacedIsAlwaysThere) {
  Write(holder_ + "/epoch", "12");
  Write(mine_ + "/epoch", "9");
  const fs::path above = fs::path(mine_).parent_path();
  const FileDescriptor watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(inotify_add_watch(watch.get(), above.c_str(), IN_MOVED_FROM | IN_MOVED_TO), 0);
  ASSERT_EQ(Fetch(OrderFor("")), absl::OkStatus());
  EXPECT_EQ(Read(mine_ + "/epoch"), "12");
  alignas(inotify_event) std::array<char, 4096> events{};
  ASSERT_GT(read(watch.get(), events.data(), events.size()), 0);
  const auto* first = reinterpret_cast<const inotify_event*>(events.data());
  EXPECT_STREQ(first->name, "checkpoints");
  EXPECT_EQ(first->mask & IN_MOVED_TO, IN_MOVED_TO) << "it goes before the new one comes";
}

TEST_F(TransferTest, WhatIsThereAlreadyIsNotFetched) {
  Write(holder_ + "/step-7.pt", Large());
  FetchOrder order = OrderFor("step-7.pt");
  order.fingerprint = ReadManifest(holder_, "step-7.pt")->fingerprint;
  ASSERT_EQ(Fetch(order), absl::OkStatus());
  received_ = 0;
  order.sources.clear();
  EXPECT_EQ(Fetch(order), absl::OkStatus());
  EXPECT_EQ(received_, 0);
}

// The next fetch finds it there, and may say so only when it is safe.
TEST_F(TransferTest, WhatIsThereAfterASyncFailedIsSafeBeforeItIsSaidToBeThere) {
  for (const std::string name : {"step-7.pt", ""}) {
    for (const fs::path& folder : {fs::path(mine_), root_ / "b/trial-2", root_ / "b"}) {
      if (name.empty() && folder == mine_) continue;  // it is synced under another name
      fs::remove_all(root_ / "b");
      fs::remove_all(holder_);
      Write(holder_ + "/step-7.pt", "learnt");
      Write(holder_ + "/deep/part", "learnt");
      FetchOrder order = OrderFor(name);
      order.fingerprint = ReadManifest(holder_, name)->fingerprint;
      FailSyncOf(folder.string());
      ASSERT_FALSE(Fetch(order).ok());
      ASSERT_TRUE(SyncHasFailed());
      order.sources.clear();
      TakeSyncedPaths();
      ASSERT_EQ(Fetch(order), absl::OkStatus());
      const std::set<std::string> synced = TakeSyncedPaths();
      std::vector<fs::path> needed = {fs::path(mine_) / "step-7.pt", mine_, root_ / "b/trial-2",
                                      root_ / "b"};
      if (name.empty()) {
        needed.insert(needed.end(), {fs::path(mine_) / "deep", fs::path(mine_) / "deep/part"});
      }
      for (const fs::path& path : needed) EXPECT_TRUE(synced.contains(path.string())) << path;
    }
  }
}

// The system counts as written what the disk did not take.
TEST_F(TransferTest, WhatTheDiskDidNotTakeIsFetchedAnew) {
  Write(holder_ + "/step-7.pt", "learnt");
  FetchOrder order = OrderFor("step-7.pt");
  order.fingerprint = ReadManifest(holder_, "step-7.pt")->fingerprint;
  const fs::path staging = root_ / "b/trial-2/incoming" / order.fingerprint;
  FailSyncOf((staging / "step-7.pt").string());
  EXPECT_THAT(std::string(Fetch(order).message()), HasSubstr("Input/output error"));
  EXPECT_FALSE(fs::exists(staging));
  EXPECT_EQ(Fetch(order), absl::OkStatus());
  EXPECT_EQ(received_, 6) << "all of it";
}

TEST_F(TransferTest, GoesOnFromTheLastByteAfterABreak) {
  Write(holder_ + "/step-7.pt", Large());
  const std::string copy = (root_ / "c" / "trial-2" / "checkpoints").string();
  Write(copy + "/step-7.pt", Large());
  const std::unique_ptr<CheckpointServer> other = Open(copy);
  FetchOrder order = OrderFor("step-7.pt");
  order.sources.push_back(SourceAt(*other, order.what, "c"));
  on_bytes_ = [this] {
    if (received_ >= 10 * static_cast<std::int64_t>(kCheckpointPieceBytes)) server_.reset();
  };
  ASSERT_EQ(Fetch(order), absl::OkStatus());
  EXPECT_EQ(server_, nullptr);
  EXPECT_EQ(Read(mine_ + "/step-7.pt"), Large());
  EXPECT_EQ(received_, std::ssize(Large())) << "no byte came twice";
}

TEST_F(TransferTest, WhatAnEarlierAgentFetchedIsTakenUp) {
  Write(holder_ + "/step-7.pt", Large());
  FetchOrder order = OrderFor("step-7.pt");
  order.fingerprint = ReadManifest(holder_, "step-7.pt")->fingerprint;
  const fs::path staged = root_ / "b/trial-2/incoming" / order.fingerprint / "step-7.pt";
  Write(staged, Large().substr(0, 1'000'001));
  ASSERT_EQ(Fetch(order), absl::OkStatus());
  EXPECT_EQ(received_, std::ssize(Large()) - 1'000'001);
  EXPECT_EQ(Read(mine_ + "/step-7.pt"), Large());
}

TEST_F(TransferTest, DamagedBytesAreNoticedAndFetchedAnew) {
  Write(holder_ + "/step-7.pt", Large());
  FetchOrder order = OrderFor("step-7.pt");
  order.fingerprint = ReadManifest(holder_, "step-7.pt")->fingerprint;
  Write(root_ / "b/trial-2/incoming" / order.fingerprint / "step-7.pt",
        std::string(1'000'000, '?'));
  ASSERT_EQ(Fetch(order), absl::OkStatus());
  EXPECT_EQ(received_, 2 * std::ssize(Large()) - 1'000'000);
  EXPECT_EQ(Read(mine_ + "/step-7.pt"), Large());
}

std::string Sealed(const std::string& bytes) {
  Checksum checksum;
  checksum.Add(bytes.data(), bytes.size());
  return bytes + TextOf(CheckpointSeal{0, checksum.value(), 0.5});
}

TEST_F(TransferTest, WhatIsDamagedWhereItComesFromIsTakenFromAnother) {
  const std::string sound = Sealed(Large());
  std::string damaged = sound;
  damaged[5] = '?';
  Write(holder_ + "/step-7.pt", damaged);
  const std::string copy = (root_ / "c" / "trial-2" / "checkpoints").string();
  Write(copy + "/step-7.pt", sound);
  const std::unique_ptr<CheckpointServer> other = Open(copy);
  FetchOrder order = OrderFor("step-7.pt");
  order.fingerprint = ReadManifest(copy, "step-7.pt")->fingerprint;
  ASSERT_EQ(ReadManifest(holder_, "step-7.pt")->fingerprint, order.fingerprint);
  order.sources.push_back(SourceAt(*other, order.what, "c"));
  ASSERT_EQ(Fetch(order), absl::OkStatus());
  EXPECT_EQ(Read(mine_ + "/step-7.pt"), sound);
}

TEST_F(TransferTest, WhatIsDamagedWhereverItIsIsAnErrorThatNamesThem) {
  std::string damaged = Sealed(Large());
  damaged[5] = '?';
  Write(holder_ + "/step-7.pt", damaged);
  const absl::Status status = Fetch(OrderFor("step-7.pt"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("node a at 127.0.0.1:"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("its copy is damaged: its checksum is "));
  EXPECT_FALSE(fs::exists(mine_ + "/step-7.pt"));
  EXPECT_EQ(received_, std::ssize(damaged)) << "it was read once";
}

// Sends what it is told to send.
class LyingHolder final : public v1::CheckpointTransfer::Service {
 public:
  explicit LyingHolder(std::vector<v1::CheckpointPiece> pieces) : pieces_(std::move(pieces)) {
    const absl::StatusOr<Certificate> certificate = MakeCertificate();
    certificate_ = certificate->pem;
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({certificate->key_pem, certificate->pem});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~LyingHolder() override { server_->Shutdown(); }

  CheckpointSource source() const {
    return {"liar", absl::StrCat("127.0.0.1:", port_), certificate_, "any", ""};
  }

 private:
  grpc::Status Read(grpc::ServerContext*, const v1::ReadCheckpoint*,
                    grpc::ServerWriter<v1::CheckpointPiece>* to) override {
    for (const v1::CheckpointPiece& piece : pieces_) to->Write(piece);
    return grpc::Status::OK;
  }

  const std::vector<v1::CheckpointPiece> pieces_;
  std::string certificate_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

v1::CheckpointPiece ManifestPiece(const std::string& path, std::int64_t size) {
  v1::CheckpointPiece piece;
  piece.mutable_manifest()->set_fingerprint("abc");
  v1::CheckpointPart& part = *piece.mutable_manifest()->add_files();
  part.set_path(path);
  part.set_size(size);
  return piece;
}
v1::CheckpointPiece Bytes(const std::string& bytes) {
  v1::CheckpointPiece piece;
  piece.set_bytes(bytes);
  return piece;
}
v1::CheckpointPiece Sum(const std::string& sum) {
  v1::CheckpointPiece piece;
  piece.set_sha256(sum);
  return piece;
}

TEST_F(TransferTest, ASourceThatDoesNotKeepItsWordIsNotBelieved) {
  struct Lie {
    std::vector<v1::CheckpointPiece> pieces;
    std::string reason;
  };
  const std::vector<Lie> lies = {
      {{ManifestPiece("step-7.pt", 4), Bytes("data"), Sum(std::string(32, 'x'))},
       "another SHA-256"},
      {{ManifestPiece("step-7.pt", 4), Bytes("more data")}, "more than the 4 bytes"},
      {{ManifestPiece("step-7.pt", 4), Sum("")}, "ended after 0 of 4 bytes"},
      {{ManifestPiece("../step-7.pt", 4)}, "no manifest of that checkpoint"},
      {{ManifestPiece("step-7.pt", -1)}, "no manifest of that checkpoint"},
      {{Bytes("data")}, "no manifest"},
      {{}, "broke off"}};
  for (const Lie& lie : lies) {
    LyingHolder holder(lie.pieces);
    FetchOrder order{31, {"mnist", 2, "step-7.pt"}, "", {holder.source()}};
    pauses_ = 0;
    const absl::Status status = Fetch(order);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr(lie.reason));
    EXPECT_EQ(pauses_, 5) << "bytes that are not believed are no progress";
    EXPECT_FALSE(fs::exists(mine_ + "/step-7.pt"));
    EXPECT_FALSE(fs::exists(root_ / "b/step-7.pt"));
  }
}

TEST_F(TransferTest, AFullDiskIsSaidAtOnce) {
  Write(holder_ + "/step-7.pt", Large());
  FetchLimits limits;
  limits.spare_disk_bytes = std::int64_t{1} << 60;
  const absl::Status status = Fetch(OrderFor("step-7.pt"), limits);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("checkpoint step-7.pt of trial 2 in study mnist: the disk of "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the checkpoint needs 0.01 GB"));
  EXPECT_EQ(pauses_, 0);
}

TEST_F(TransferTest, WhoHasItNotAndWhoIsNotThereAreNamed) {
  FetchOrder order = OrderFor("step-7.pt");
  absl::Status status = Fetch(order);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(pauses_, 0) << "it is not there later either";
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("checkpoint step-7.pt of trial 2 in study mnist cannot be fetched: node a at "
                "127.0.0.1:"));
  server_.reset();
  order.sources.push_back({"b", "", "", "", ""});
  status = Fetch(order);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("refused"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("node b: its agent has opened no port"));
}

TEST_F(TransferTest, AnotherContentOfTheSameNameIsRefused) {
  Write(holder_ + "/step-7.pt", "one");
  FetchOrder order = OrderFor("step-7.pt");
  order.fingerprint = "feed";
  const absl::Status status = Fetch(order);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is another one"));
}

TEST_F(TransferTest, WithoutItsTicketNobodyGetsACheckpoint) {
  Write(holder_ + "/step-7.pt", "one");
  Write(holder_ + "/step-8.pt", "two");
  FetchOrder order = OrderFor("step-7.pt");
  for (const char* ticket : {"", "the-ticke", "the-ticket-"}) {
    order.sources[0].ticket = ticket;
    EXPECT_THAT(std::string(Fetch(order).message()), HasSubstr("the ticket is not good"));
  }
  FetchOrder other = OrderFor("step-7.pt");
  other.what.name = "step-8.pt";
  EXPECT_THAT(std::string(Fetch(other).message()), HasSubstr("the ticket is not good"));
}

TEST_F(TransferTest, ASourceWithAnotherCertificateIsNotBelieved) {
  Write(holder_ + "/step-7.pt", "one");
  FetchOrder order = OrderFor("step-7.pt");
  order.sources[0].certificate = MakeCertificate()->pem;
  EXPECT_EQ(Fetch(order).code(), absl::StatusCode::kUnavailable);
}

TEST_F(TransferTest, MoreReadersThanAllowedComeAgainLater) {
  Write(holder_ + "/step-7.pt", "small");
  // More than sockets and streams have room for.
  Write(holder_ + "/step-8.pt", "");
  fs::resize_file(holder_ + "/step-8.pt", std::uintmax_t{1} << 30);
  server_->Allow("the-ticket", {"mnist", 2, "step-8.pt"});
  const FetchOrder order = OrderFor("step-7.pt");
  grpc::SslCredentialsOptions options{server_->certificate(), "", ""};
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kAgentCertificateName);
  const auto stub = v1::CheckpointTransfer::NewStub(
      grpc::CreateCustomChannel(server_->address(), grpc::SslCredentials(options), arguments));
  v1::ReadCheckpoint request;
  request.set_study("mnist");
  request.set_trial_number(2);
  request.set_name("step-8.pt");
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::CheckpointPiece>>> readers;
  for (int i = 0; i < kMaxCheckpointReaders; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    contexts.back()->AddMetadata("authorization", "Bearer the-ticket");
    readers.push_back(stub->Read(contexts.back().get(), request));
    v1::CheckpointPiece first;
    ASSERT_TRUE(readers.back()->Read(&first)) << "and then it reads no further";
  }
  EXPECT_THAT(std::string(Fetch(order).message()), HasSubstr("serves 4 transfers already"));
  for (int i = 0; i < kMaxCheckpointReaders; ++i) {
    contexts[static_cast<std::size_t>(i)]->TryCancel();
    readers[static_cast<std::size_t>(i)]->Finish();
  }
  // The pauses pass at once, and the server hears in its own time that they have left.
  most_pauses_ = 100'000;
  FetchLimits patient;
  patient.fruitless_rounds = 100'000;
  EXPECT_EQ(Fetch(order, patient), absl::OkStatus());
}

TEST(CheckpointPaths, StayInTheirFolder) {
  for (const char* good : {"step-7.pt", "a/b/c", "..a", "a..b"}) EXPECT_TRUE(StaysInside(good));
  for (const char* bad :
       {"", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "./a", "a//b/", "a/"}) {
    EXPECT_FALSE(StaysInside(bad)) << bad;
  }
  EXPECT_FALSE(StaysInside(std::string("a\0b", 3)));
  EXPECT_FALSE(StaysInside(std::string(kMaxCheckpointPath + 1, 'a')));
}

TEST(CheckpointServers, AnAddressOfAnotherMachineIsRefused) {
  const auto server = CheckpointServer::Open("192.0.2.1", 0, 0, [](const auto&) { return ""; });
  EXPECT_THAT(std::string(server.status().message()),
              HasSubstr("cannot listen on 192.0.2.1, port 0, for agents that fetch checkpoints"));
}

}  // namespace
}  // namespace espalier
