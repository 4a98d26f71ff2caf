#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trial_runner/collectives/collectives.h"

namespace espalier {

// What every two members of a new group send to each other over the connection that they will use:
// this reveals a transport that accepted a stranger because it connected first. Each direction has
// a message of its own, so what a member has received is of no use to it elsewhere. Pure.

inline constexpr std::size_t kConfirmationBytes = 32;

// What this member sends to each other member, by rank.
std::vector<std::uint8_t> ConfirmationsOf(const GroupPlan& plan);

// The ranks whose messages, in what this member has received, are missing (all zeros) or wrong.
struct Unconfirmed {
  std::vector<int> silent;
  std::vector<int> wrong;
};
Unconfirmed FindUnconfirmed(const GroupPlan& plan, const std::vector<std::uint8_t>& received);

// "the connection of rank 2 is not that member's: ..."; empty: all have confirmed.
std::string Describe(const Unconfirmed& unconfirmed);

}  // namespace espalier
