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

std::string Change(const Seat& seat) {
  int before = 0;
  for (const auto& [node, slots] : seat.job->current) before += slots;
  if (before == 0) return absl::StrCat("starts on ", SlotsText(seat.total));
  if (seat.total == 0) return "pauses";
  if (seat.total == before) return "moves";
  return absl::StrCat(seat.total > before ? "grows " : "shrinks ", before, " -> ", seat.total);
}

}  // namespace

bool Sizes::MayResize(std::size_t j) const {
  const Seat& seat = board_.seat(j);
  if (seat.total == 0 || seat.job->joining) return false;
  return std::none_of(seat.shares.begin(), seat.shares.end(), [this](const Share& share) {
    return board_.draining(static_cast<std::size_t>(share.node));
  });
}

void Sizes::Settle(bool reclaim, const std::function<void()>& divide) {
  std::vector<Shares> before(board_.size());
  for (int round = 0; round < kMostRounds; ++round) {
    for (std::size_t j = 0; j < board_.size(); ++j) before[j] = board_.seat(j).shares;
    if (divide) divide();
    Mend(board_, reclaim);
    AdmitWaiting(board_, reclaim);
    bool changed = false;
    for (std::size_t j = 0; j < board_.size(); ++j) changed |= board_.seat(j).shares != before[j];
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
  for (; slots > board_.seat(j).total && !grown; --slots) grown = board_.Grown(j, slots);
  if (!grown || (accept && !accept(*grown))) return false;
  board_.Assign(j, *std::move(grown));
  why_[j] = why;
  return true;
}

void Sizes::BringTo(const std::vector<int>& targets,
                    const std::function<std::string(std::size_t)>& why) {
  for (std::size_t j = 0; j < board_.size(); ++j) {
    if (MayResize(j) && board_.seat(j).total > targets[j]) Shrink(j, targets[j], why(j));
  }
  for (std::size_t j = 0; j < board_.size(); ++j) {
    if (MayResize(j) && board_.seat(j).total < targets[j]) Grow(j, targets[j], why(j));
  }
}

void Sizes::Take(const std::vector<Shares>& planned,
                 const std::function<std::string(std::size_t)>& why) {
  std::vector<std::size_t> changed;
  for (std::size_t j = 0; j < board_.size(); ++j) {
    if (planned[j] != board_.seat(j).shares) changed.push_back(j);
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
    const Seat& seat = board_.seat(j);
    if (why_[j].empty()) continue;
    std::vector<std::string> parts = seat.lost;
    parts.push_back(why_[j]);
    reasons[seat.job->id] = absl::StrCat(Change(seat), ": ", absl::StrJoin(parts, ", "));
  }
  std::vector<AllocationDecision> decisions = board_.Decisions();
  for (AllocationDecision& decision : decisions) {
    const auto reason = reasons.find(decision.trial);
    if (reason != reasons.end()) decision.reason = reason->second;
  }
  return decisions;
}

}  // namespace espalier
