// Checkpoints on the disks of simulated nodes, copied and fetched as real agents do.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/simulated_pool.h"

namespace espalier {

namespace {

constexpr std::size_t kKept = 2;
constexpr int kRounds = 5;  // of all sources, before a fetch is given up

std::string NameOf(std::int64_t step) { return absl::StrCat("step-", step, ".pt"); }

}  // namespace

void SimulatedPool::LoseNode(std::size_t index, bool with_disk, double back_after_s) {
  SimNode& node = nodes_[index];
  const bool connected = node.connected;
  node.up = node.connected = false;
  ++node.session;
  node.processes.clear();
  node.unacknowledged.clear();
  if (with_disk) node.disk.clear();
  ++met_["node lost"];
  met_["disk lost"] += with_disk ? 1 : 0;
  if (connected) StepCore(AgentGone{node.id});
  agenda_.In(back_after_s, [this, index] {
    nodes_[index].up = true;
    Dial(index);
  });
}

const SimulatedPool::DiskFile* SimulatedPool::OnDisk(std::size_t index, TrialId trial,
                                                     const std::string& fingerprint) const {
  const auto of_trial = nodes_[index].disk.find(trial);
  if (fingerprint.empty() || of_trial == nodes_[index].disk.end()) return nullptr;
  for (const DiskFile& file : of_trial->second) {
    if (file.fingerprint == fingerprint) return &file;
  }
  return nullptr;
}

void SimulatedPool::SaveCheckpoint(std::size_t index, const Process& process) {
  const std::string fingerprint = absl::StrCat("file-", ++next_file_);
  const std::string name = NameOf(process.step);
  std::vector<DiskFile>& files = nodes_[index].disk[process.trial];
  std::erase_if(files, [&](const DiskFile& file) { return file.step >= process.step; });
  files.push_back({process.step, fingerprint, false});
  if (files.size() > kKept) files.erase(files.begin());
  Emit(index, process.id,
       FromReplica{process.id, ReplicaCheckpoint{absl::StrCat("/", nodes_[index].name, "/", name),
                                                 process.step, name, fingerprint}});
}

void SimulatedPool::Damage(std::size_t index) {
  for (auto& [trial, files] : nodes_[index].disk) {
    if (!files.empty()) files.back().damaged = true;
  }
}

// A damaged one is set aside.
bool SimulatedPool::IsHereAndSound(std::size_t index, TrialId trial,
                                   const std::string& fingerprint) {
  const DiskFile* here = OnDisk(index, trial, fingerprint);
  if (here == nullptr || !here->damaged) return here != nullptr;
  ++checkpoints_.damaged;
  std::erase_if(nodes_[index].disk[trial],
                [&](const DiskFile& file) { return file.fingerprint == fingerprint; });
  return false;
}

// One that a node cannot reach on its own initiative it cannot fetch from.
SimulatedPool::Fetch SimulatedPool::FetchTo(std::size_t index, TrialId trial,
                                            const CheckpointLabel& what,
                                            const std::vector<NodeId>& sources) {
  if (IsHereAndSound(index, trial, what.fingerprint)) return Fetch::kHere;
  Fetch failed = Fetch::kNowhere;
  for (const NodeId source : sources) {
    const std::size_t from = NodeIndex(source);
    if (from == index) continue;
    if (from == nodes_.size() || !nodes_[from].up || IsCut(index, from)) {
      failed = Fetch::kNotNow;
      continue;
    }
    const DiskFile* file = OnDisk(from, trial, what.fingerprint);
    if (file == nullptr || file->damaged) continue;
    std::vector<DiskFile>& files = nodes_[index].disk[trial];
    DiskFile copy = *file;
    copy.fetched = true;
    std::erase_if(files, [&](const DiskFile& known) { return known.step == copy.step; });
    files.push_back(copy);
    std::sort(files.begin(), files.end(),
              [](const DiskFile& a, const DiskFile& b) { return a.step < b.step; });
    if (files.size() > kKept) files.erase(files.begin());
    return Fetch::kHere;
  }
  ++checkpoints_.in_vain;
  return failed;
}

void SimulatedPool::GoOnFetching(std::size_t index, Process& process) {
  const StartReplicaCommand start = *process.fetching;
  const Fetch fetched = FetchTo(index, start.trial, start.from, start.sources);
  if (fetched == Fetch::kHere) {
    ++checkpoints_.fetched;
    process.fetching.reset();
    process.step = start.from.step;
    return Emit(index, {}, CheckpointCopied{nodes_[index].id, start.trial, start.from, "", 1000});
  }
  if (fetched == Fetch::kNotNow && ++process.fetch_rounds < kRounds) return;
  Exit(index, process.id, -1, 0, absl::StrCat("checkpoint ", start.from.name, " cannot be fetched"),
       fetched == Fetch::kNowhere ? CheckpointFailure::kGone : CheckpointFailure::kMissing);
}

void SimulatedPool::Do(std::size_t index, const CopyCheckpointCommand& command) {
  const Time at = After(agenda_.now(), random_.Uniform(0.05, 0.6));
  OnStream(index, at, [this, index, command] { CopyTo(index, command); });
}

void SimulatedPool::CopyTo(std::size_t index, const CopyCheckpointCommand& command) {
  if (command.of >= 0) return CloneOn(index, command);
  const bool here = FetchTo(index, command.trial, command.what, command.sources) == Fetch::kHere;
  if (here) ++checkpoints_.copies;
  Emit(index, {},
       CheckpointCopied{nodes_[index].id, command.trial, command.what,
                        here ? "" : "cannot be fetched", 1000});
}

void SimulatedPool::CloneATrial() {
  std::vector<const Trial*> running;
  for (const auto& [id, trial] : state().trials) {
    if (trial.state == TrialState::kRunning) running.push_back(&trial);
  }
  if (running.empty()) return;
  const Trial& parent = *running[static_cast<std::size_t>(random_.Below(running.size()))];
  const SearchSpace& space = state().studies.at(parent.study).spec.space;
  const bool made = StepCore(CloneTrial{parent.id, space.Sample(random_), ""}).status.ok();
  if (made) ++met_["clone ordered"];
}

// As an agent does: from one trial's folder to another's, unless it is gone or damaged there.
void SimulatedPool::CloneOn(std::size_t index, const CopyCheckpointCommand& command) {
  const auto clone = state().trials.find(command.trial);
  if (clone == state().trials.end()) return;
  const Study& study = state().studies.at(clone->second.study);
  const TrialId parent = study.trials.at(static_cast<std::size_t>(command.of));
  CheckpointCopied copied{nodes_[index].id, command.trial, command.what, "is there no more", 0};
  if (IsHereAndSound(index, parent, command.what.fingerprint)) {
    nodes_[index].disk[command.trial] = {{command.what.step, command.what.fingerprint}};
    copied.error.clear();
    copied.path = absl::StrCat("/", nodes_[index].name, "/", command.what.name);
    ++met_["cloned"];
  }
  Emit(index, {}, copied);
}

void SimulatedPool::Do(std::size_t index, const DropCheckpointsCommand& command) {
  SimNode& node = nodes_[index];
  const Study* study = state().FindStudy(command.study);
  if (study == nullptr) return;
  const TrialId trial = study->trials.at(static_cast<std::size_t>(command.trial_number));
  std::vector<DiskFile>& files = node.disk[trial];
  checkpoints_.dropped +=
      static_cast<int>(std::erase_if(files, [](const DiskFile& file) { return file.fetched; }));
}

HeldCheckpoints SimulatedPool::HeldOn(std::size_t index) const {
  HeldCheckpoints held;
  for (const auto& [id, files] : nodes_[index].disk) {
    const auto trial = state().trials.find(id);
    if (trial == state().trials.end()) continue;
    for (const DiskFile& file : files) {
      held.files.push_back({state().studies.at(trial->second.study).spec.name, trial->second.number,
                            NameOf(file.step), file.fingerprint, file.fetched});
    }
  }
  return held;
}

// A trial goes back to an older checkpoint only where no connected node has the newest one, and
// then its record says so.
void SimulatedPool::CheckNewest(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    const auto* recorded = std::get_if<CheckpointRecorded>(&change);
    if (recorded == nullptr) continue;
    const CheckpointLabel before = std::exchange(newest_[recorded->id], recorded->label);
    if (recorded->label.step >= before.step) continue;
    ++checkpoints_.older;
    const bool said = std::any_of(changes.begin(), changes.end(), [](const Change& other) {
      const auto* made = std::get_if<DecisionMade>(&other);
      return made != nullptr &&
             made->decision.reason.find("goes on from the older") != std::string::npos;
    });
    if (!said) Fail("a trial goes on from an older checkpoint without a word");
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const DiskFile* there = OnDisk(i, recorded->id, before.fingerprint);
      if (nodes_[i].connected && there != nullptr && !there->damaged) {
        Fail("a trial gives up a checkpoint that a connected node has");
      }
    }
  }
}

void SimulatedPool::CheckGroupStart(TrialId trial, std::int64_t generation, std::int64_t step) {
  const auto saved = saved_before_.find({trial, generation});
  if (saved == saved_before_.end() || step >= saved->second) return;
  // Given up since then, and said.
  if (newest_[trial].step < saved->second) return;
  Fail(absl::StrCat("trial ", trial.value, " begins generation ", generation, " at step ", step,
                    ", and a checkpoint of step ", saved->second, " was acknowledged before"));
}

int SimulatedPool::TrialsOnMoreNodesThan(int most) const {
  std::map<TrialId, int> nodes;
  for (const SimNode& node : nodes_) {
    for (const auto& [trial, files] : node.disk) nodes[trial] += files.empty() ? 0 : 1;
  }
  return static_cast<int>(
      std::count_if(nodes.begin(), nodes.end(), [most](const auto& e) { return e.second > most; }));
}

}  // namespace espalier
