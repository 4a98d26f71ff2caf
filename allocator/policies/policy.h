#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "allocator/pool/pool.h"
#include "allocator/pool/study_shares.h"
#include "base/plugin.h"

namespace espalier {

// Divides the slots of a pool among trials. Pure: no clock, no hidden randomness, no I/O. What a
// policy remembers between calls (a cache, a queue, the population of a search) follows from the
// pools it was shown: the same sequence of pools gives the same decisions, whatever order nodes and
// jobs are listed in. One owner, one thread at a time. Promises of each policy:
//  - no node is given more slots than it has, no node carries two trials that span nodes (except
//    where the option share_spanned of optimus and tiresias allows it), no trial holds slots of two
//    GPU types or on nodes of two islands, and a draining node is given nothing new;
//  - a changed trial has its minimum to maximum, or its pinned number, or nothing;
//  - applied and asked again (with every cooldown over), a policy has no further decision;
//  - waiting trials are served in order; one that fits the pool but not yet the free slots is
//    waited for, one larger than the whole pool is passed over.
class Policy {
 public:
  virtual ~Policy() = default;
  // One entry for each job whose placement changes, in ascending order of submission.
  virtual std::vector<AllocationDecision> Allocate(const Pool& pool) = 0;

  // Whether the policy has nothing to add when it is asked again, with its decisions applied and no
  // time passed, and its first answer does not depend on earlier calls. Other policies act in
  // rounds or search by chance.
  virtual bool settles() const { return true; }
  // Whether a running trial may have to pause for the sake of another.
  virtual bool preempts() const { return false; }
  // The exponent by which the pool is divided among studies (DivideAmongStudies), also before the
  // policy is asked: for how many trials each draws, and whose trials pause.
  virtual double study_fairness() const { return kStudyFairness; }
};

// All policies. Each row is the last function of its policy's source file.
const PluginTable<Policy>& Policies();

// A policy that also keeps to jobs' sizes and to what one node may hold of them (within_bounds.h),
// which a row's own need not know. InvalidArgument: the policy or an option is unknown, or a value
// is out of range; the error names it and what is known.
absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Options& options);

}  // namespace espalier
