#include "trial_runner/agent/checkpoint_keeper.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/trial_folder.h"
#include "trial_runner/agent/checkpoints/checkpoint_damage.h"
#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<CheckpointStore> StoreOf(const AgentOptions& options) {
  if (options.shared_directory.empty()) return OwnDisk(options.directory);
  return SharedFolder(options.shared_directory,
                      absl::StrCat(options.node_name, ":", options.directory));
}

FetchOrder OrderOf(const CheckpointName& what, std::int64_t trial_id,
                   const v1::CheckpointSources& from) {
  FetchOrder order{trial_id, what, from.fingerprint(), {}};
  for (const v1::CheckpointSource& source : from.sources()) {
    order.sources.push_back({.node = source.node(),
                             .address = source.address(),
                             .certificate = source.certificate(),
                             .ticket = source.ticket(),
                             .error = source.error()});
  }
  return order;
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(const AgentOptions& options, std::string mark,
                                   std::function<void()> wake)
    : on_(options.keep_checkpoints),
      mark_(std::move(mark)),
      ports_(options.ports),
      directory_(options.directory),
      store_(StoreOf(options)),
      folders_(/*by_path=*/!options.keep_checkpoints),
      transfers_(std::make_unique<CheckpointTransfers>(*store_, std::move(wake))) {}

CheckpointKeeper::~CheckpointKeeper() = default;

void CheckpointKeeper::Describe(v1::Hello& hello) const {
  if (!on_) return;
  v1::HeldCheckpoints& held = *hello.mutable_checkpoints();
  hello.set_shared_folder(mark_);
  if (store_->shared()) return;  // they belong to all agents
  const std::vector<StoredCheckpoint> stored =
      StoredCheckpoints(directory_, kMaxToldCheckpoints + 1);
  held.set_more(stored.size() > kMaxToldCheckpoints);
  for (const StoredCheckpoint& checkpoint : stored) {
    const CheckpointName& what = checkpoint.what;
    const absl::StatusOr<CheckpointManifest> manifest =
        ReadManifest(store_->FolderOf(what.study, what.trial_number), what.name);
    if (!manifest.ok()) continue;
    v1::HeldCheckpoint& one = *held.add_checkpoints();
    one.set_study(what.study);
    one.set_trial_number(what.trial_number);
    one.set_name(what.name);
    one.set_fingerprint(manifest->fingerprint);
    one.set_fetched(checkpoint.fetched);
  }
}

v1::CheckpointServerOpen CheckpointKeeper::OpenServer(const HostAddress& host) {
  if (server_ == nullptr || server_host_ != host.address) {
    server_.reset();
    server_host_ = host.address;
    auto opened = CheckpointServer::Open(host.address, ports_.low, ports_.high,
                                         [store = store_](const CheckpointName& what) {
                                           return store->FolderOf(what.study, what.trial_number);
                                         });
    if (opened.ok()) {
      server_ = *std::move(opened);
      spdlog::info("other agents fetch checkpoints of this node at {}", server_->address());
    } else {
      server_error_ = std::string(opened.status().message());
      spdlog::warn("checkpoints of this node cannot be fetched: {}", server_error_);
    }
  }
  v1::CheckpointServerOpen told;
  if (server_ == nullptr) {
    told.set_error(server_error_);
    return told;
  }
  told.set_address(server_->address());
  told.set_certificate(server_->certificate());
  return told;
}

void CheckpointKeeper::Allow(const v1::AllowRead& read) {
  if (server_ == nullptr) return;
  server_->Allow(read.ticket(), {read.study(), read.trial_number(), read.name()});
}

// The service is told the outcome in any case, so that it can order the copy again.
void CheckpointKeeper::Copy(const v1::CopyCheckpoint& copy) {
  FetchOrder order = OrderOf({copy.study(), copy.trial_number(), copy.from().name()},
                             copy.trial_id(), copy.from());
  if (copy.has_of_trial()) order.of_trial = copy.of_trial();
  const absl::Status put = transfers_->Put(std::move(order), copy.from().step(), 0);
  if (!put.ok()) spdlog::warn("{}", std::string(put.message()));
}

bool CheckpointKeeper::IsHere(v1::StartReplica& start) const {
  const std::string folder = store_->FolderOf(start.study(), start.trial_number());
  const v1::CheckpointSources& from = start.from();
  const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder, from.name());
  if (!manifest.ok() || manifest->fingerprint != from.fingerprint()) return false;
  if (HasChecksum(folder, from.name())) return false;
  start.set_checkpoint(from.name().empty() ? folder : absl::StrCat(folder, "/", from.name()));
  return true;
}

absl::Status CheckpointKeeper::Fetch(const v1::StartReplica& start) {
  return transfers_->Put(OrderOf({start.study(), start.trial_number(), start.from().name()},
                                 start.trial_id(), start.from()),
                         start.from().step(), start.replica_id());
}

std::vector<CheckpointKeeper::Arrived> CheckpointKeeper::TakeArrived() {
  std::vector<Arrived> all;
  for (CheckpointTransfers::Done& done : transfers_->TakeDone()) {
    Arrived arrived;
    arrived.replica_id = done.replica_id;
    v1::CheckpointCopied& told = arrived.told;
    told.set_trial_id(done.order.trial_id);
    told.set_name(done.order.what.name);
    told.set_fingerprint(done.order.fingerprint);
    told.set_step(done.step);
    told.set_bytes(done.bytes);
    if (done.path.ok()) {
      told.set_path(*done.path);
      arrived.path = *std::move(done.path);
    } else {
      told.set_error(std::string(done.path.status().message()));
      arrived.gone = absl::IsNotFound(done.path.status());
    }
    all.push_back(std::move(arrived));
  }
  return all;
}

void CheckpointKeeper::TrialRunsHere(const v1::StartReplica& start) {
  const std::string folder = store_->FolderOf(start.study(), start.trial_number());
  KeepCopiesAsOwn(folder);
  folders_.Add(start, folder);
}

void CheckpointKeeper::Drop(const v1::DropCheckpoints& drop) const {
  if (store_->shared()) return;
  const fs::path folder = store_->FolderOf(drop.study(), drop.trial_number());
  RemoveCopies(folder.string());
  RemoveEmptyTrialFolder(folder.parent_path().string());  // those with logs or parameters stay
}

bool CheckpointKeeper::Complete(const v1::StartReplica& start, v1::CheckpointSaved& saved) const {
  if (!on_) return true;
  const std::string folder = store_->FolderOf(start.study(), start.trial_number());
  const fs::path path(saved.path());
  if (path.parent_path() != fs::path(folder)) return true;  // a place of its own
  const std::string name = path.filename().string();
  const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder, name);
  if (!manifest.ok()) return false;
  saved.set_name(name);
  saved.set_fingerprint(manifest->fingerprint);
  return true;
}

}  // namespace espalier
