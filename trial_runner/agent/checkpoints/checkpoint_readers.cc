#include "trial_runner/agent/checkpoints/checkpoint_readers.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "transfer.pb.h"
#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"
#include "tuner/credentials/sha256.h"

namespace espalier {
namespace {

constexpr std::string_view kBearer = "Bearer ";

// Reads a checkpoint's parts one after another and sends what lies behind the offset.
class Sender {
 public:
  Sender(std::string folder, std::int64_t offset, const CheckpointReaders::PieceTaker& to)
      : folder_(std::move(folder)), skip_(offset), to_(to) {}

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
    return to_(piece) ? absl::OkStatus() : absl::CancelledError("its reader left");
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
  const CheckpointReaders::PieceTaker& to_;
  Sha256 sum_;
};

}  // namespace

CheckpointReaders::CheckpointReaders(FolderOf folder_of) : folder_of_(std::move(folder_of)) {}

void CheckpointReaders::Allow(std::string ticket, CheckpointName what) {
  const std::lock_guard lock(mutex_);
  tickets_.push_back({std::move(ticket), std::move(what), Clock::now(), false});
  if (tickets_.size() > kMaxReadTickets) tickets_.pop_front();
}

bool CheckpointReaders::busy() {
  if (readers_ > 0) return true;
  const std::lock_guard lock(mutex_);
  const Clock::time_point since = Clock::now() - kTicketUse;
  return std::any_of(tickets_.begin(), tickets_.end(), [since](const Ticket& ticket) {
    return !ticket.used && ticket.given > since;
  });
}

absl::Status CheckpointReaders::NotGood() {
  return absl::UnauthenticatedError("the ticket is not good for this checkpoint");
}

CheckpointReaders::Ticket* CheckpointReaders::Given(std::string_view authorization,
                                                    const CheckpointName* what) {
  if (!authorization.starts_with(kBearer)) return nullptr;
  const std::string_view ticket = authorization.substr(kBearer.size());
  const auto shown = std::find_if(tickets_.begin(), tickets_.end(), [&](const Ticket& known) {
    return known.ticket.size() == ticket.size() &&
           CRYPTO_memcmp(known.ticket.data(), ticket.data(), ticket.size()) == 0 &&
           (what == nullptr || known.what == *what);
  });
  return shown == tickets_.end() ? nullptr : &*shown;
}

bool CheckpointReaders::Knows(std::string_view authorization) {
  const std::lock_guard lock(mutex_);
  return Given(authorization, nullptr) != nullptr;
}

bool CheckpointReaders::Admits(std::string_view authorization, const CheckpointName& what) {
  const std::lock_guard lock(mutex_);
  Ticket* const shown = Given(authorization, &what);
  if (shown == nullptr) return false;
  shown->used = true;
  return true;
}

absl::Status CheckpointReaders::Read(std::string_view authorization,
                                     const v1::ReadCheckpoint& request, const PieceTaker& to) {
  const CheckpointName what{request.study(), request.trial_number(), request.name()};
  if (!Admits(authorization, what)) return NotGood();
  const absl::Cleanup leave = [this] { --readers_; };
  if (++readers_ > kMaxCheckpointReaders) {
    return absl::ResourceExhaustedError(
        absl::StrCat("it serves ", kMaxCheckpointReaders, " transfers already"));
  }
  return Send(what, request, to);
}

absl::Status CheckpointReaders::Send(const CheckpointName& what, const v1::ReadCheckpoint& request,
                                     const PieceTaker& to) const {
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
  Sender sender(folder, told.offset(), to);
  ESPALIER_RETURN_IF_ERROR(sender.Write(first));
  for (const CheckpointPart& part : manifest.parts) {
    ESPALIER_RETURN_IF_ERROR(sender.Send(part));
  }
  return sender.End();
}

}  // namespace espalier
