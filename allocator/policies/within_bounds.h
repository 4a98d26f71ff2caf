#pragma once

#include <memory>

#include "allocator/policies/policy.h"

namespace espalier {

// The policy, whose answers are made to keep what most policies do not know: a job's sizes
// (Job::sizes), how many of its slots may be on one node (Job::most_on_node), and that what fits on
// one node is not spread (Job::undivided). A number between two sizes is brought down to the
// smaller one; a place that is not allowed is exchanged for another with free slots, as large as
// one has room for. A policy that knows of these things is changed in nothing.
std::unique_ptr<Policy> WithinBounds(std::unique_ptr<Policy> policy);

}  // namespace espalier
