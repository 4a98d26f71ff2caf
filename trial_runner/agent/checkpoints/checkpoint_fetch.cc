#include "trial_runner/agent/checkpoints/checkpoint_fetch.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "transfer.grpc.pb.h"
#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"
#include "trial_runner/agent/checkpoints/incoming_checkpoint.h"
#include "trial_runner/agent/checkpoints/told_manifest.h"
#include "tuner/credentials/certificate.h"
#include "tuner/proto/grpc_status.h"

namespace espalier {
namespace {

// A source whose machine has vanished is noticed after at most twice this.
constexpr int kKeepalive_ms = 10'000;
constexpr int kDial_ms = 5'000;
constexpr int kMaxPieceBytes = 8 << 20;
constexpr double kLongestPause_s = 5;

std::shared_ptr<grpc::Channel> Dial(const CheckpointSource& source) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = source.certificate;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepalive_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepalive_ms);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kDial_ms);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxPieceBytes);
  arguments.SetSslTargetNameOverride(kAgentCertificateName);
  return grpc::CreateCustomChannel(source.address, grpc::SslCredentials(options), arguments);
}

// The fetch of one checkpoint, from its sources in turn.
class Fetch {
 public:
  Fetch(const FetchOrder& order, const std::string& folder, const FetchLimits& limits,
        const FetchNote& note, const std::string& incoming)
      : order_(order),
        limits_(limits),
        note_(note),
        incoming_(folder, order.what.name, incoming),
        fingerprint_(order.fingerprint),
        answers_(order.sources.size()),
        damaged_(order.sources.size()) {}

  absl::Status Run(const std::function<bool(double)>& wait) {
    double pause_s = limits_.first_pause_s;
    for (int fruitless = 0; fruitless < limits_.fruitless_rounds;) {
      bool some_may_have_it = false;
      bool damaged = false;
      const std::int64_t before = received_;
      for (std::size_t i = 0; i < order_.sources.size(); ++i) {
        // What is damaged on its disk stays so.
        if (damaged_[i]) continue;
        damaged_here_ = false;
        answers_[i] = ReadFrom(order_.sources[i]);
        damaged_[i] = damaged_here_;
        // The error is this machine's, or the fetch is done: no other source makes a difference.
        if (answers_[i].ok() || here_) return Annotated(answers_[i]);
        some_may_have_it = some_may_have_it || !absl::IsNotFound(answers_[i]);
        damaged = damaged || absl::IsDataLoss(answers_[i]);
      }
      if (!some_may_have_it) break;
      const bool came_on = received_ > before && !damaged;
      fruitless = came_on ? 0 : fruitless + 1;
      pause_s = came_on ? limits_.first_pause_s : std::min(pause_s * 2, kLongestPause_s);
      if (!wait(pause_s)) return absl::CancelledError("given up");
    }
    return Failed();
  }

 private:
  absl::Status ReadFrom(const CheckpointSource& source) {
    if (source.address.empty()) {
      return absl::UnavailableError(
          source.error.empty() ? "its agent has opened no port for checkpoints yet" : source.error);
    }
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + source.ticket);
    v1::ReadCheckpoint request;
    request.set_study(order_.what.study);
    request.set_trial_number(order_.what.trial_number);
    request.set_name(order_.what.name);
    request.set_fingerprint(fingerprint_);
    request.set_offset(incoming_.BytesThere(fingerprint_));
    const auto stub = v1::CheckpointTransfer::NewStub(Dial(source));
    const auto stream = stub->Read(&context, request);
    const absl::Status taken = Take(*stream);
    if (!taken.ok() && !end_missing_) context.TryCancel();
    const grpc::Status end = stream->Finish();
    if (taken.ok() || !end_missing_ || end.ok()) return taken;
    return FromGrpc(end);
  }

  // OK: the checkpoint is in its place. With end_missing_ the stream's own status says why not.
  absl::Status Take(grpc::ClientReader<v1::CheckpointPiece>& stream) {
    end_missing_ = false;
    v1::CheckpointPiece piece;
    bool begun = false;
    while (stream.Read(&piece)) {
      switch (piece.kind_case()) {
        case v1::CheckpointPiece::kManifest:
          if (begun) return absl::DataLossError("it sent two manifests");
          ESPALIER_RETURN_IF_ERROR(Begin(piece.manifest()));
          begun = true;
          break;
        case v1::CheckpointPiece::kBytes:
          if (!begun) return absl::DataLossError("it sent no manifest");
          ESPALIER_RETURN_IF_ERROR(Here(incoming_.Add(piece.bytes())));
          received_ += static_cast<std::int64_t>(piece.bytes().size());
          if (!note_(received_)) return Here(absl::CancelledError("given up"));
          break;
        case v1::CheckpointPiece::kSha256:
          if (!begun) return absl::DataLossError("it sent no manifest");
          return Finish(piece.sha256());
        case v1::CheckpointPiece::KIND_NOT_SET:
          return absl::DataLossError("it sent a piece of an unknown kind");
      }
    }
    end_missing_ = true;
    return absl::UnavailableError("it broke off");
  }

  absl::Status Begin(const v1::CheckpointManifest& told) {
    ESPALIER_ASSIGN_OR_RETURN(CheckpointManifest manifest, ManifestOf(told, order_.what.name));
    if (!order_.fingerprint.empty() && manifest.fingerprint != order_.fingerprint) {
      return absl::NotFoundError(absl::StrCat("its checkpoint of that name is another one, ",
                                              manifest.fingerprint, " instead of ",
                                              order_.fingerprint));
    }
    if (told.offset() < 0 || told.offset() > manifest.size) {
      return absl::DataLossError("it goes on from a byte that there is not");
    }
    fingerprint_ = manifest.fingerprint;
    return Here(incoming_.Begin(std::move(manifest), told.offset(), limits_.spare_disk_bytes));
  }

  absl::Status Finish(const std::string& sha256) {
    ESPALIER_RETURN_IF_ERROR(Here(incoming_.Check(sha256)));
    const absl::Status sound = incoming_.CheckForDamage([this] { return note_(received_); });
    damaged_here_ = absl::IsDataLoss(sound);
    if (damaged_here_) {
      incoming_.Discard();
      return absl::NotFoundError(absl::StrCat("its copy ", std::string(sound.message())));
    }
    ESPALIER_RETURN_IF_ERROR(Here(sound));
    return Here(incoming_.PutInPlace());
  }

  // Errors of this machine's disk end the whole fetch; damaged bytes are the source's affair.
  absl::Status Here(absl::Status status) {
    here_ = !status.ok() && !absl::IsDataLoss(status) && !absl::IsUnavailable(status);
    if (absl::IsDataLoss(status)) incoming_.Discard();
    return status;
  }

  std::string Name() const {
    const std::string& name = order_.what.name;
    return absl::StrCat("checkpoint ", name.empty() ? "folder" : name, " of trial ",
                        order_.what.trial_number, " in study ", order_.what.study);
  }

  absl::Status Annotated(const absl::Status& status) const {
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(Name(), ": ", std::string(status.message())));
  }

  absl::Status Failed() const {
    if (order_.sources.empty()) {
      return absl::NotFoundError(absl::StrCat(Name(), ": no connected node has it"));
    }
    std::vector<std::string> reasons;
    bool nowhere = true;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      const CheckpointSource& source = order_.sources[i];
      reasons.push_back(absl::StrCat("node ", source.node, source.address.empty() ? "" : " at ",
                                     source.address, ": ", std::string(answers_[i].message())));
      nowhere = nowhere && absl::IsNotFound(answers_[i]);
    }
    const std::string text =
        absl::StrCat(Name(), " cannot be fetched: ", absl::StrJoin(reasons, "; "));
    return nowhere ? absl::NotFoundError(text) : absl::UnavailableError(text);
  }

  const FetchOrder& order_;
  const FetchLimits& limits_;
  const FetchNote& note_;
  IncomingCheckpoint incoming_;
  std::string fingerprint_;  // asked for, or of what the last source had
  std::vector<absl::Status> answers_;
  std::vector<bool> damaged_;  // came whole from there, and is damaged
  bool damaged_here_ = false;  // the one that came last
  std::int64_t received_ = 0;
  bool end_missing_ = false;
  bool here_ = false;
};

}  // namespace

absl::Status FetchCheckpoint(const FetchOrder& order, const std::string& folder,
                             const FetchLimits& limits, const std::function<bool(double)>& wait,
                             const FetchNote& note, const std::string& incoming) {
  if (!order.fingerprint.empty()) {
    const absl::StatusOr<CheckpointManifest> here = ReadManifest(folder, order.what.name);
    if (here.ok() && here->fingerprint == order.fingerprint) return SyncInPlace(folder, *here);
  }
  return Fetch(order, folder, limits, note, incoming).Run(wait);
}

}  // namespace espalier
