#include "tests/benchmarks/power_cuts/agents.h"

#include <csignal>
#include <filesystem>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/private_files.h"
#include "base/trial_folder.h"
#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"
#include "trial_runner/torch/checkpoints/checkpoint_file.h"

namespace espalier::power_cuts {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCheckpointBytes = 9000;

// What ends a zip archive.
const std::string kZipEnd = std::string("PK\005\006") + std::string(18, '\0');

ReplicaExited ExitOf(ReplicaId replica, int signal = 0) {
  ReplicaExited exited;
  exited.replica = replica;
  exited.exit_code = signal == 0 ? 0 : -1;
  exited.signal = signal;
  return exited;
}

// The newest whole ones of a folder, so many. Those count whose writer or fetch failed behind the
// rename, too, and told nobody: they are there, and what removes older ones counts them.
std::set<std::string> NewestWhole(const std::string& folder, std::size_t most) {
  std::set<std::string> newest;
  for (const std::string& path : CheckpointFiles(folder)) {
    if (newest.size() < most && VerifyCheckpointFile(path).ok()) newest.insert(path);
  }
  return newest;
}

}  // namespace

std::string IdentityFor(const std::string& study) { return "identity-of-" + study; }

absl::StatusOr<std::string> SaveCheckpoint(const Stage& stage, const std::string& folder,
                                           std::int64_t step, std::size_t bytes) {
  stage.EndPromises(folder, NewestWhole(folder, kKeptCheckpoints - 1));
  const std::string state = absl::StrCat(step, std::string(bytes, 's')) + kZipEnd;
  absl::StatusOr<std::string> path =
      WriteCheckpointFile({.folder = folder, .step = step}, [&](const ByteSink& sink) {
        sink(state.data(), state.size());
        return absl::OkStatus();
      });
  if (path.ok()) stage.Promise(*path);
  return path;
}

TwoAgents::TwoAgents(const Stage& stage, TestedService& service)
    : stage_(stage), service_(service) {
  for (const char* machine : {"a", "b"}) stores_[machine] = OwnDisk(stage.Path(machine));
}

TwoAgents::~TwoAgents() = default;

CheckpointStore& TwoAgents::StoreOf(const std::string& machine) { return *stores_.at(machine); }

void TwoAgents::Join() {
  for (const char* machine : {"a", "b"}) {
    AgentHello hello{.node_name = machine, .slots = 1, .replicas = {}};
    hello.checkpoints.emplace();
    const Reply reply = service_.Post(hello);
    if (reply.status.ok()) machines_[reply.node()] = machine;
  }
}

void TwoAgents::Serve() {
  for (std::vector<Command> commands = service_.TakeCommands(); !commands.empty();
       commands = service_.TakeCommands()) {
    for (const Command& command : commands) {
      std::visit([this](const auto& known) { On(known); }, command);
    }
  }
}

TwoAgents::TrialOf TwoAgents::Look(TrialId trial) {
  TrialOf found;
  service_
      .Read([&](const View& view) {
        const auto& state = view.core.state();
        const auto at = state.trials.find(trial);
        if (at == state.trials.end()) return;
        found = {state.studies.at(at->second.study).spec.name, at->second.number};
      })
      .IgnoreError();
  return found;
}

std::string TwoAgents::MachineOf(NodeId node) {
  const auto machine = machines_.find(node);
  return machine == machines_.end() ? "a" : machine->second;
}

absl::StatusOr<std::string> TwoAgents::Obtain(const std::string& from, const std::string& to,
                                              const FetchOrder& order) {
  std::unique_ptr<CheckpointServer>& server = servers_[from];
  if (server == nullptr) {
    ESPALIER_ASSIGN_OR_RETURN(
        server, CheckpointServer::Open("127.0.0.1", 0, 0, [this, from](const CheckpointName& what) {
          return StoreOf(from).FolderOf(what.study, what.trial_number);
        }));
  }
  server->Allow("ticket", order.what);
  FetchOrder whole = order;
  whole.sources = {{.node = from,
                    .address = server->address(),
                    .certificate = server->certificate(),
                    .ticket = "ticket",
                    .error = ""}};
  const std::string folder = StoreOf(to).FolderOf(order.what.study, order.what.trial_number);
  stage_.EndPromises(folder, NewestWhole(folder, kKeptCopies - 1));
  return StoreOf(to).Obtain(
      whole, [](double) { return false; }, [](std::int64_t) { return true; });
}

absl::StatusOr<std::string> TwoAgents::Copy(const std::string& study, std::int64_t number,
                                            const std::string& name) {
  const CheckpointName what{study, number, name};
  ESPALIER_ASSIGN_OR_RETURN(const CheckpointManifest manifest,
                            ReadManifest(StoreOf("a").FolderOf(study, number), name));
  return Obtain("a", "b", {1, what, manifest.fingerprint, {}});
}

void TwoAgents::On(const StartReplicaCommand& command) {
  const std::string machine = MachineOf(command.node);
  const TrialOf trial = Look(command.trial);
  const std::string folder = StoreOf(machine).FolderOf(trial.study, trial.number);
  ClaimTrialFolder(stage_.Path(machine), {trial.study, IdentityFor(trial.study), trial.number})
      .status()
      .IgnoreError();
  const bool here = command.from.known() && fs::exists(folder + "/" + command.from.name);
  if (command.from.known() && !here && !command.sources.empty()) {
    const FetchOrder order{command.trial.value,
                           {trial.study, trial.number, command.from.name},
                           command.from.fingerprint,
                           {}};
    const auto path = Obtain(MachineOf(command.sources.front()), machine, order);
    if (path.ok()) stage_.Promise(*path);
  }
  KeepCopiesAsOwn(folder);
  MakePrivateFolders(folder).IgnoreError();
  WritePrivateFile(fs::path(folder).parent_path().string() + "/parameters.json", "{}")
      .IgnoreError();
  replicas_[command.replica] = {command.trial, command.node, 0};
  service_.Post(ReplicaStarted{command.replica});
  service_.Post(FromReplica{
      command.replica,
      ReplicaReady{absl::StrCat("host:", command.replica.value), {64, 64, 1, 64, true}, 10}});
}

void TwoAgents::On(const RegroupCommand& command) {
  const auto at = replicas_.find(command.replica);
  if (at == replicas_.end()) return;
  if (!command.membership.members.empty()) {
    at->second.generation = command.membership.generation;
    service_.Post(
        FromReplica{command.replica, ReplicaRegrouped{command.membership.generation, step_, 0.01}});
    return;
  }
  Save(command.replica, at->second, step_ + 1);
  replicas_.erase(at);
  service_.Post(ExitOf(command.replica));
}

void TwoAgents::On(const StopReplicaCommand& command) {
  if (replicas_.erase(command.replica) == 0) return;
  service_.Post(ExitOf(command.replica, SIGTERM));
}

void TwoAgents::On(const CopyCheckpointCommand& command) {
  const TrialOf trial = Look(command.trial);
  if (command.sources.empty()) return;
  const FetchOrder order{command.trial.value,
                         {trial.study, trial.number, command.what.name},
                         command.what.fingerprint,
                         {}};
  const auto path = Obtain(MachineOf(command.sources.front()), MachineOf(command.node), order);
  if (path.ok()) stage_.Promise(*path);
  CheckpointCopied copied{command.node, command.trial, command.what};
  if (!path.ok()) copied.error = std::string(path.status().message());
  service_.Post(copied);
}

void TwoAgents::On(const DropCheckpointsCommand& command) {
  const std::string folder =
      StoreOf(MachineOf(command.node)).FolderOf(command.study, command.trial_number);
  stage_.EndPromises(folder, {});
  RemoveCopies(folder);
}

void TwoAgents::Save(ReplicaId id, const Replica& replica, std::int64_t step) {
  const TrialOf trial = Look(replica.trial);
  const std::string folder = StoreOf(MachineOf(replica.node)).FolderOf(trial.study, trial.number);
  const auto path = SaveCheckpoint(stage_, folder, step, kCheckpointBytes);
  if (!path.ok()) return;
  const std::string name = fs::path(*path).filename().string();
  const auto manifest = ReadManifest(folder, name);
  if (!manifest.ok()) return;
  service_.Post(FromReplica{id, ReplicaCheckpoint{*path, step, name, manifest->fingerprint}});
}

void TwoAgents::Train(std::int64_t step, double value) {
  step_ = step;
  for (const auto& [id, replica] : std::map(replicas_)) {
    ReplicaProgress progress;
    progress.generation = replica.generation;
    progress.step = step;
    progress.epoch = static_cast<double>(step);
    progress.global_batch_size = 64;
    service_.Post(FromReplica{id, progress});
    service_.Post(FromReplica{id, ReplicaReport{step, value + static_cast<double>(id.value), 1}});
    if (replicas_.contains(id)) Save(id, replica, step);
    Serve();
  }
}

void TwoAgents::Finish(double value) {
  for (const auto& [id, replica] : std::map(replicas_)) {
    service_.Post(FromReplica{id, ReplicaFinished{value}});
    if (replicas_.erase(id) > 0) service_.Post(ExitOf(id));
    Serve();
  }
}

}  // namespace espalier::power_cuts
