#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/pool/pool.h"
#include "tuner/base/options.h"

namespace espalier {

// Divides the slots of a pool among trials. Pure: no clock, no hidden randomness, no I/O. What a
// policy remembers between calls (a cache, a queue, the population of a search) follows from the
// pools it was shown: the same sequence of pools gives the same decisions, whatever order nodes and
// jobs are listed in. One owner, one thread at a time. Promises of each policy:
//  - no node is given more slots than it has, no node carries two trials that span nodes, no trial
//    holds slots of two GPU types or on nodes of two islands, and a draining node is given nothing
//    new;
//  - a changed trial has its minimum to maximum, or its pinned number, or nothing;
//  - applied and asked again (with every cooldown over), a policy has no further decision;
//  - waiting trials are served in order; one that fits the pool but not yet the free slots is
//    waited for, one larger than the whole pool is passed over.
class Policy {
 public:
  virtual ~Policy() = default;
  // One entry for each job whose placement changes, in ascending order of submission.
  virtual std::vector<AllocationDecision> Allocate(const Pool& pool) = 0;
};

// InvalidArgument names an unknown policy or option, or a value out of range, and what is known.
absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Options& options);
std::vector<std::string> PolicyNames();

// What the table tells of a policy.
struct PolicyInfo {
  std::string_view name;
  std::string_view description;  // one line, for help and documents
  // Whether asked again, with its decisions applied and no time passed, it has nothing to add and
  // the first answer does not depend on what it was asked before. Others act in rounds or search
  // by chance.
  bool settles = true;
  // Whether a running trial may have to pause for another's sake.
  bool preempts = false;
};
std::vector<PolicyInfo> PolicyInfos();

}  // namespace espalier
