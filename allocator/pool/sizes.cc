#include "allocator/pool/sizes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/pool/admission.h"

namespace espalier {

namespace {

constexpr int kMostRounds = 10;

std::string Change(const Holder& holder) {
  int before = 0;
  for (const auto& [node, slots] : holder.job->current) before += slots;
  if (before == 0) return absl::StrCat("starts on ", SlotsText(holder.total));
  if (holder.total == 0) return "pauses";
  if (holder.total == before) return "moves";
  return absl::StrCat(holder.total > before ? "grows " : "shrinks ", before, " -> ", holder.total);
}

}  // namespace

bool Sizes::MayResize(std::size_t j) const {
  const Holder& holder = board_.holder(j);
  if (holder.total == 0 || holder.job->joining) return false;
  return std::none_of(holder.shares.begin(), holder.shares.end(), [this](const Share& share) {
    return board_.draining(static_cast<std::size_t>(share.node));
  });
}

void Sizes::Settle(bool reclaim, const std::function<void()>& divide) {
  std::vector<Shares> before(board_.size());
  for (int round = 0; round < kMostRounds; ++round) {
    for (std::size_t j = 0; j < board_.size(); ++j) before[j] = board_.holder(j).shares;
    if (divide) divide();
    Mend(board_, reclaim);
    AdmitWaiting(board_, reclaim);
    bool changed = false;
    for (std::size_t j = 0; j < board_.size(); ++j) changed |= board_.holder(j).shares != before[j];
    if (!changed) return;
  }
}

void Sizes::Shrink(std::size_t j, int slots, const std::string& why) {
  board_.Assign(j, board_.Shrunk(j, slots));
  why_[j] = why;
}

bool Sizes::Grow(std::size_t j, int slots, const std::string& why,
                 const std::function<bool(const Shares&)>& accept) {
  std::optional<Shares> grown;
  for (; slots > board_.holder(j).total && !grown; --slots) grown = board_.Grown(j, slots);
  if (!grown || (accept && !accept(*grown))) return false;
  board_.Assign(j, *std::move(grown));
  why_[j] = why;
  return true;
}

void Sizes::BringTo(const std::vector<int>& targets,
                    const std::function<std::string(std::size_t)>& why) {
  for (std::size_t j = 0; j < board_.size(); ++j) {
    if (MayResize(j) && board_.holder(j).total > targets[j]) Shrink(j, targets[j], why(j));
  }
  for (std::size_t j = 0; j < board_.size(); ++j) {
    if (MayResize(j) && board_.holder(j).total < targets[j]) Grow(j, targets[j], why(j));
  }
}

void Sizes::Take(const std::vector<Shares>& planned,
                 const std::function<std::string(std::size_t)>& why) {
  std::vector<std::size_t> changed;
  for (std::size_t j = 0; j < board_.size(); ++j) {
    if (planned[j] != board_.holder(j).shares) changed.push_back(j);
  }
  for (const std::size_t j : changed) {
    why_[j] = why(j);
    board_.Assign(j, {});
  }
  for (const std::size_t j : changed) board_.Assign(j, planned[j]);
}

std::vector<AllocationDecision> Sizes::Decisions() {
  std::map<TrialId, std::string> reasons;
  for (std::size_t j = 0; j < board_.size(); ++j) {
    const Holder& holder = board_.holder(j);
    if (why_[j].empty()) continue;
    std::vector<std::string> parts = holder.lost;
    parts.push_back(why_[j]);
    reasons[holder.job->id] = absl::StrCat(Change(holder), ": ", absl::StrJoin(parts, ", "));
  }
  std::vector<AllocationDecision> decisions = board_.Decisions();
  for (AllocationDecision& decision : decisions) {
    const auto reason = reasons.find(decision.trial);
    if (reason != reasons.end()) decision.reason = reason->second;
  }
  return decisions;
}

}  // namespace espalier
