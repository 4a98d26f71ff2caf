#include "trial_runner/agent/checkpoints/checkpoint_server.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "transfer.grpc.pb.h"
#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"
#include "tuner/credentials/certificate.h"
#include "tuner/credentials/sha256.h"
#include "tuner/proto/grpc_status.h"
#include "tuner/proto/plain_messages.h"

namespace espalier {
namespace {

constexpr int kThreads = kMaxCheckpointReaders + 4;
constexpr int kMaxRequestBytes = 64 << 10;
constexpr std::string_view kBearer = "Bearer ";

// Reads a checkpoint's parts one after another and sends what lies behind the offset.
class Sender {
 public:
  Sender(std::string folder, std::int64_t offset, grpc::ServerContext& context,
         grpc::ServerWriter<v1::CheckpointPiece>& to)
      : folder_(std::move(folder)), skip_(offset), context_(context), to_(to) {}

  absl::Status Send(const CheckpointPart& part) {
    const std::string path = absl::StrCat(folder_, "/", part.path);
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file.open()) return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno)));
    for (std::int64_t left = part.size; left > 0;) {
      ESPALIER_ASSIGN_OR_RETURN(std::string bytes, ReadSome(file.get(), left, path));
      left -= static_cast<std::int64_t>(bytes.size());
      sum_.Add(bytes);
      ESPALIER_RETURN_IF_ERROR(Pass(std::move(bytes)));
    }
    return absl::OkStatus();
  }

  absl::Status End() {
    v1::CheckpointPiece last;
    last.set_sha256(sum_.Take());
    return Write(last);
  }

  absl::Status Write(const v1::CheckpointPiece& piece) {
    if (context_.IsCancelled() || !to_.Write(piece)) return absl::CancelledError("its reader left");
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::string> ReadSome(int file, std::int64_t left,
                                              const std::string& path) {
    std::string bytes(std::min(kCheckpointPieceBytes, static_cast<std::size_t>(left)), '\0');
    ssize_t got = read(file, bytes.data(), bytes.size());
    while (got < 0 && errno == EINTR) got = read(file, bytes.data(), bytes.size());
    if (got < 0) return absl::DataLossError(absl::StrCat(path, ": ", strerror(errno)));
    if (got == 0) return absl::DataLossError(absl::StrCat(path, ": became shorter"));
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }

  // What the reader has already counts for the checksum and is not sent.
  absl::Status Pass(std::string bytes) {
    if (context_.IsCancelled()) return absl::CancelledError("its reader left");
    const std::int64_t skipped = std::min(skip_, static_cast<std::int64_t>(bytes.size()));
    skip_ -= skipped;
    bytes.erase(0, static_cast<std::size_t>(skipped));
    if (bytes.empty()) return absl::OkStatus();
    v1::CheckpointPiece piece;
    piece.set_bytes(std::move(bytes));
    return Write(piece);
  }

  const std::string folder_;
  std::int64_t skip_;
  grpc::ServerContext& context_;
  grpc::ServerWriter<v1::CheckpointPiece>& to_;
  Sha256 sum_;
};

class GrpcCheckpointServer final : public CheckpointServer,
                                   private v1::CheckpointTransfer::Service {
 public:
  GrpcCheckpointServer(Certificate certificate, FolderOf folder_of)
      : certificate_(std::move(certificate)), folder_of_(std::move(folder_of)) {}

  ~GrpcCheckpointServer() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  bool Listen(const std::string& host, int port) {
    const bool bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
    const std::string of_host = bare_v6 ? absl::StrCat("[", host, "]") : host;
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({certificate_.key_pem, certificate_.pem});
    grpc::ResourceQuota quota;
    quota.SetMaxThreads(kThreads);
    grpc::ServerBuilder builder;
    int bound = 0;
    builder.AddListeningPort(absl::StrCat(of_host, ":", port), grpc::SslServerCredentials(options),
                             &bound);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    TakePlainMessages(builder);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || bound == 0) return false;
    address_ = absl::StrCat(of_host, ":", bound);
    return true;
  }

  const std::string& address() const override { return address_; }
  const std::string& certificate() const override { return certificate_.pem; }

  void Allow(std::string ticket, CheckpointName what) override {
    const std::lock_guard lock(mutex_);
    tickets_.push_back({std::move(ticket), std::move(what), Clock::now(), false});
    if (tickets_.size() > kMaxReadTickets) tickets_.pop_front();
  }

  bool busy() override {
    if (readers_ > 0) return true;
    const std::lock_guard lock(mutex_);
    const Clock::time_point since = Clock::now() - kTicketUse;
    return std::any_of(tickets_.begin(), tickets_.end(), [since](const Ticket& ticket) {
      return !ticket.used && ticket.given > since;
    });
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Ticket {
    std::string ticket;
    CheckpointName what;
    Clock::time_point given;
    bool used = false;
  };

  bool Admits(const grpc::ServerContext& context, const CheckpointName& what) {
    const auto found = context.client_metadata().find("authorization");
    if (found == context.client_metadata().end()) return false;
    const std::string_view value(found->second.data(), found->second.size());
    if (!value.starts_with(kBearer)) return false;
    const std::string_view ticket = value.substr(kBearer.size());
    const std::lock_guard lock(mutex_);
    const auto shown = std::find_if(tickets_.begin(), tickets_.end(), [&](const Ticket& known) {
      return known.ticket.size() == ticket.size() &&
             CRYPTO_memcmp(known.ticket.data(), ticket.data(), ticket.size()) == 0 &&
             known.what == what;
    });
    if (shown == tickets_.end()) return false;
    shown->used = true;
    return true;
  }

  grpc::Status Read(grpc::ServerContext* context, const v1::ReadCheckpoint* request,
                    grpc::ServerWriter<v1::CheckpointPiece>* writer) override {
    const CheckpointName what{request->study(), request->trial_number(), request->name()};
    if (!Admits(*context, what)) {
      return {grpc::StatusCode::UNAUTHENTICATED, "the ticket is not good for this checkpoint"};
    }
    const absl::Cleanup leave = [this] { --readers_; };
    if (++readers_ > kMaxCheckpointReaders) {
      return {grpc::StatusCode::RESOURCE_EXHAUSTED,
              absl::StrCat("it serves ", kMaxCheckpointReaders, " transfers already")};
    }
    return ToGrpc(SendCheckpoint(*context, what, *request, *writer));
  }

  absl::Status SendCheckpoint(grpc::ServerContext& context, const CheckpointName& what,
                              const v1::ReadCheckpoint& request,
                              grpc::ServerWriter<v1::CheckpointPiece>& writer) {
    const std::string folder = folder_of_(what);
    ESPALIER_ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(folder, what.name));
    const bool goes_on = request.fingerprint() == manifest.fingerprint && request.offset() > 0 &&
                         request.offset() <= manifest.size;
    v1::CheckpointPiece first;
    v1::CheckpointManifest& told = *first.mutable_manifest();
    told.set_fingerprint(manifest.fingerprint);
    told.set_offset(goes_on ? request.offset() : 0);
    for (const CheckpointPart& part : manifest.parts) {
      v1::CheckpointPart& added = *told.add_files();
      added.set_path(part.path);
      added.set_size(part.size);
    }
    Sender sender(folder, told.offset(), context, writer);
    ESPALIER_RETURN_IF_ERROR(sender.Write(first));
    for (const CheckpointPart& part : manifest.parts) {
      ESPALIER_RETURN_IF_ERROR(sender.Send(part));
    }
    return sender.End();
  }

  const Certificate certificate_;
  const FolderOf folder_of_;
  std::string address_;
  std::mutex mutex_;
  std::deque<Ticket> tickets_;
  std::atomic<int> readers_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointServer>> CheckpointServer::Open(
    const std::string& host, int first_port, int last_port, const FolderOf& folder_of) {
  ESPALIER_ASSIGN_OR_RETURN(Certificate certificate, MakeCertificate());
  for (int port = first_port; port <= std::max(first_port, last_port); ++port) {
    auto server = std::make_unique<GrpcCheckpointServer>(certificate, folder_of);
    if (server->Listen(host, port)) return server;
  }
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on ", host, ", port ", first_port,
      last_port > first_port ? absl::StrCat(" to ", last_port) : "",
      ", for agents that fetch checkpoints: is it an address of this machine with a free port?"));
}

}  // namespace espalier
