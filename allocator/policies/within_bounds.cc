#include "allocator/policies/within_bounds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/pool/board.h"
#include "allocator/pool/slot_ledger.h"

namespace espalier {

namespace {

bool HasBounds(const Job& job) {
  return !job.sizes.empty() || job.most_on_node > 0 || job.undivided;
}

// The pool as it would be with the decisions.
Pool With(const Pool& pool, const std::vector<AllocationDecision>& decisions) {
  std::map<TrialId, const Placement*> decided;
  for (const AllocationDecision& decision : decisions) {
    decided[decision.trial] = &decision.placement;
  }
  Pool then = pool;
  for (Job& job : then.jobs) {
    if (const auto at = decided.find(job.id); at != decided.end()) job.current = *at->second;
  }
  return then;
}

// The pool once the decisions are carried out, in which those are put right that are not allowed.
class Corrections {
 public:
  Corrections(const Pool& pool, const std::vector<AllocationDecision>& decisions)
      : then_(With(pool, decisions)), board_(then_) {
    for (const Job& job : pool.jobs) before_[job.id] = &job;
    for (std::size_t j = 0; j < board_.size(); ++j) at_[board_.holder(j).job->id] = j;
  }

  // False: nothing is left of the decision.
  bool PutRight(AllocationDecision& decision) {
    const std::size_t j = at_.at(decision.trial);
    const Job& job = *before_.at(decision.trial);
    const int total = TotalSlots(decision.placement);
    if (!HasBounds(job) || total == 0 || Allowed(j, board_.holder(j).shares)) return true;
    Shares place = PlaceFor(j, job, LargestSize(job, total));
    board_.Assign(j, std::move(place));
    Placement corrected;
    for (const Share& share : board_.holder(j).shares) {
      corrected[IdOf(share.node)] = share.slots;
    }
    if (corrected == job.current) return false;
    absl::StrAppend(&decision.reason, "; ", SlotsText(TotalSlots(corrected)), " of ", total,
                    ", as its sizes and nodes allow");
    decision.placement = std::move(corrected);
    decision.figures.reset();  // they are of another placement
    return true;
  }

 private:
  // What it has already it may keep, as far as its sizes allow.
  bool Allowed(std::size_t j, const Shares& shares) const {
    const Job& job = *before_.at(board_.holder(j).job->id);
    const int total = TotalSlots(shares);
    if (!MayHold(job, total)) return false;
    const auto keeps = [&](const Share& share) {
      const auto had = job.current.find(IdOf(share.node));
      return had != job.current.end() && share.slots <= had->second;
    };
    if (std::all_of(shares.begin(), shares.end(), keeps)) return true;
    if (shares.size() > 1 && board_.MustBeOnOne(j, total, board_.type_of(shares))) return false;
    return std::all_of(shares.begin(), shares.end(), [&](const Share& share) {
      return keeps(share) ||
             share.slots <= board_.most_for(j, static_cast<std::size_t>(share.node));
    });
  }
  NodeId IdOf(int node) const { return board_.node_id(static_cast<std::size_t>(node)); }

  // What it has now where that is as many and still there; else a part of what was decided, else a
  // place elsewhere. Empty: there is none.
  Shares PlaceFor(std::size_t j, const Job& job, int slots) {
    const Shares decided = board_.holder(j).shares;
    board_.Assign(j, {});
    if (const auto kept = StillThere(j, job); kept && TotalSlots(*kept) == slots) return *kept;
    board_.Assign(j, decided);
    for (; slots > 0; slots = LargestSize(job, slots - 1)) {
      const Shares fewer = slots < TotalSlots(decided) ? board_.Shrunk(j, slots) : decided;
      if (Allowed(j, fewer)) return fewer;
      board_.Assign(j, {});
      const std::optional<Shares> fresh = board_.Grown(j, slots);
      board_.Assign(j, decided);
      if (fresh && Allowed(j, *fresh)) return *fresh;
    }
    return {};
  }

  std::optional<Shares> StillThere(std::size_t j, const Job& job) const {
    Shares shares;
    for (std::size_t n = 0; n < board_.node_count(); ++n) {
      const auto at = job.current.find(board_.node_id(n));
      if (at == job.current.end()) continue;
      const bool may_span = job.current.size() == 1 || board_.MaySpan(j, static_cast<int>(n));
      if (at->second > board_.free_on(n) || !may_span) return std::nullopt;
      shares.push_back({static_cast<int>(n), at->second});
    }
    if (shares.size() != job.current.size() || !Allowed(j, shares)) return std::nullopt;
    return shares;
  }

  Pool then_;
  Board board_;
  std::map<TrialId, const Job*> before_;
  std::map<TrialId, std::size_t> at_;
};

class Bounded : public Policy {
 public:
  explicit Bounded(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    std::vector<AllocationDecision> decisions = policy_->Allocate(pool);
    if (decisions.empty() || std::none_of(pool.jobs.begin(), pool.jobs.end(), HasBounds)) {
      return decisions;
    }
    Corrections corrections(pool, decisions);
    std::erase_if(decisions, [&corrections](AllocationDecision& decision) {
      return !corrections.PutRight(decision);
    });
    return decisions;
  }

  bool settles() const override { return policy_->settles(); }
  bool preempts() const override { return policy_->preempts(); }
  double study_fairness() const override { return policy_->study_fairness(); }

 private:
  const std::unique_ptr<Policy> policy_;
};

}  // namespace

std::unique_ptr<Policy> WithinBounds(std::unique_ptr<Policy> policy) {
  return std::make_unique<Bounded>(std::move(policy));
}

}  // namespace espalier
