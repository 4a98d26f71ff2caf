// OptimizerStep's comparisons of replicas: what becomes of a trial whose replicas have parted.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "trial_runner/kernels/bit_hash.h"
#include "trial_runner/torch/engine/optimizer_step.h"

namespace espalier {
namespace {

// In place of a buffer's hash: it has changed on all replicas before, by what each has seen.
constexpr std::uint64_t kOfEach = 0;
// By which norms may differ where replicas round differently.
constexpr double kMostUnlike = 1e-2;

constexpr char kReasons[] =
    "Likely reasons: one replica alone changes parameters or the optimizer (`if rank == 0`), "
    "random "
    "numbers of a generator of the program's own, decisions by a replica's own loss or clock, "
    "parameters or a state that replicas which join are not given, or faulty memory. "
    "ESPALIER_CHECK_REPLICAS=off trains on without comparing";

// With the point behind it; empty: the buffer is of the model itself.
std::string ModuleOf(const std::string& buffer) { return buffer.substr(0, buffer.rfind('.') + 1); }

}  // namespace

absl::StatusOr<std::string> OptimizerStep::FindDifference() {
  const std::vector<std::uint64_t> own = check_.OfEach(state_.position);
  std::vector<std::int64_t> told{std::ssize(own)};
  ESPALIER_ASSIGN_OR_RETURN(auto all, group_.collectives().AllGather(told));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return absl::StrCat("replica ", rank, " has ", all[rank][0] - 1,
                        " tensors of parameters and optimizers, and replica 0 ", all[0][0] - 1);
  }
  told.clear();
  for (const std::uint64_t number : own) told.push_back(std::bit_cast<std::int64_t>(number));
  ESPALIER_ASSIGN_OR_RETURN(all, group_.collectives().AllGather(told));
  std::vector<std::string> names;
  std::size_t count = 0;
  std::size_t rank = 0;
  std::int64_t since = state_.position.step;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const bool same = std::ranges::all_of(all, [&](const auto& of) { return of[i] == all[0][i]; });
    if (same) continue;
    if (count++ == 0) rank = OddOneOut(all, i);
    if (names.size() < kMostNamed) names.push_back(check_.NameOf(i));
    since = std::min(since, check_.LastAgreed(i));
  }
  if (count == 0) {
    // Where a group has just formed the first step tells of buffers, too.
    ESPALIER_RETURN_IF_ERROR(CompareBuffers());
    return std::string();
  }
  const std::string when =
      since < 0
          ? absl::StrCat("since the group formed, found after step ", state_.position.step)
          : absl::StrCat("since a step after ", since, ", found after step ", state_.position.step);
  return absl::StrCat("replica ", rank,
                      " has other values than the others: ", SomeNames(names, count), ", ", when);
}

std::vector<std::string> OptimizerStep::ChangedBuffers() const {
  std::vector<std::string> changed;
  for (const auto& [name, hash] : check_.OfBuffers()) {
    const auto kept = state_.kept_buffers.find(name);
    if (kept != state_.kept_buffers.end() && kept->second == kOfEach) continue;
    if (kept == state_.kept_buffers.end() || kept->second != hash) changed.push_back(name);
  }
  return changed;
}

void OptimizerStep::KeepBuffers() {
  std::map<std::string, std::uint64_t> now = check_.OfBuffers();
  for (auto& [name, hash] : now) {
    const auto kept = state_.kept_buffers.find(name);
    if (kept != state_.kept_buffers.end() && kept->second != hash) hash = kOfEach;
  }
  state_.kept_buffers = std::move(now);
}

// For the next step, in which all is compared: of modules in a model which of them.
void OptimizerStep::NoteChangedBuffers() {
  std::set<std::string> changed;
  for (const std::string& name : ChangedBuffers()) {
    const std::string module = ModuleOf(name);
    changed.insert(module.empty() ? name : module);
  }
  const std::string text = absl::StrJoin(changed, "\n");
  check_.SetChangedBuffers(HashBits(text.data(), text.size()));
}

// Observers, as of ranges for quantization, make several buffers of what they see: some come out on
// one replica as they were, and on others do not.
bool OptimizerStep::IsObserved(const std::string& buffer,
                               const std::map<std::string, std::vector<std::size_t>>& changed) {
  const std::string module = ModuleOf(buffer);
  const auto of_each = [&](const auto& kept) {
    return kept.second == kOfEach && ModuleOf(kept.first) == module;
  };
  const auto on_all = [&](const auto& other) {
    return std::ssize(other.second) == group_.size() && ModuleOf(other.first) == module;
  };
  return !module.empty() && (std::ranges::any_of(state_.kept_buffers, of_each) ||
                             std::ranges::any_of(changed, on_all));
}

absl::Status OptimizerStep::CompareBuffers() {
  if (group_.size() == 1 || !check_.on()) return absl::OkStatus();
  // By name, since a program may add buffers.
  const std::string changed = absl::StrJoin(ChangedBuffers(), "\n");
  const std::vector<std::int64_t> told{
      std::bit_cast<std::int64_t>(HashBits(changed.data(), changed.size())), std::ssize(changed)};
  ESPALIER_ASSIGN_OR_RETURN(const auto all, group_.collectives().AllGather(told));
  if (std::ranges::all_of(all, [&all](const auto& of) { return of == all[0]; })) {
    return absl::OkStatus();
  }
  std::int64_t longest = 0;
  for (const auto& of_rank : all) longest = std::max(longest, of_rank[1]);
  std::vector<std::int64_t> letters(changed.begin(), changed.end());
  letters.resize(static_cast<std::size_t>(longest), '\n');
  ESPALIER_ASSIGN_OR_RETURN(const auto texts, group_.collectives().AllGather(letters));
  std::map<std::string, std::vector<std::size_t>> ranks;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const std::string text(texts[rank].begin(), texts[rank].end());
    for (const auto& name : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      ranks[std::string(name)].push_back(rank);
    }
  }
  for (const auto& [name, of] : ranks) {
    if (of.size() == texts.size() || IsObserved(name, ranks)) continue;
    FailAsUnlike(absl::StrCat("since all had the same, buffer \"", name.substr(name.find('/') + 1),
                              "\" has changed on replica ", absl::StrJoin(of, ", "),
                              " and not on all, found after step ", state_.position.step));
  }
  return absl::OkStatus();
}

// All members have found that they differ.
absl::Status OptimizerStep::FailWhereUnlike() {
  ESPALIER_ASSIGN_OR_RETURN(const std::string difference, FindDifference());
  if (!difference.empty()) FailAsUnlike(difference);
  // Whatever it was, it is no reason to end a trial.
  if (group_.rank() == 0) {
    std::fprintf(stderr, "espalier: step %lld: replicas compared unlike parts, and all is alike\n",
                 static_cast<long long>(state_.position.step));
  }
  check_.SetChangedBuffers(0);
  CompareAnew();
  return absl::OkStatus();
}

void OptimizerStep::FailAsUnlike(const std::string& difference) {
  if (group_.rank() == 0) ++trial_.checks.unlike;
  const std::string failure =
      absl::StrCat("replicas that train one model have parted: ", difference, ". ", kReasons);
  trial_.finish_group({.value = std::nullopt, .failure = failure});
  if (group_.rank() != 0) EndProcess(0);
  EndProcess(absl::AbortedError(failure), 1);
}

void OptimizerStep::CountCheck() {
  if (group_.rank() == 0) ++(check_.unlike() ? trial_.checks.norms : trial_.checks.alike);
}

absl::Status OptimizerStep::CompareReplicas() {
  if (group_.size() == 1 || models_.empty() || !check_.on()) return absl::OkStatus();
  const std::vector<std::int64_t> told{
      std::bit_cast<std::int64_t>(check_.OfAll(state_.position)),
      std::bit_cast<std::int64_t>(ReplicaCheck::OfMachine()),
      std::bit_cast<std::int64_t>(check_.unlike() ? check_.Norm() : 0.0)};
  ESPALIER_ASSIGN_OR_RETURN(const auto all, group_.collectives().AllGather(told));
  const auto same = [&all](std::size_t i) {
    return std::ranges::all_of(all, [&](const auto& of) { return of[i] == all[0][i]; });
  };
  if (check_.unlike() || !same(1)) {
    const auto norm = std::bit_cast<double>(all[0][2]);
    for (const auto& of_rank : all) {
      const auto other = std::bit_cast<double>(of_rank[2]);
      if (!(std::abs(other - norm) <= kMostUnlike * std::abs(norm))) return FailWhereUnlike();
    }
    if (group_.rank() == 0 && !std::exchange(unlike_said_, true)) {
      std::fprintf(stderr,
                   "espalier: replicas are on unlike processors or GPUs, or libraries, and round "
                   "differently: they are compared by norm, and go on from rank 0's state after "
                   "each epoch\n");
    }
    if (group_.rank() == 0) ++trial_.checks.norms;
    ESPALIER_RETURN_IF_ERROR(group_.TakeStateOfRank0());
    for (const auto& model : models_) model->StartGroup(collectives_.FromDeviceToDevice());
    return absl::OkStatus();
  }
  if (!same(0)) return FailWhereUnlike();
  check_.CountAll(state_.position);
  CountCheck();
  return absl::OkStatus();
}

}  // namespace espalier
