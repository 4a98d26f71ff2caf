#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trial_runner/collectives/collectives.h"

namespace espalier {

// What every two members of a new group say to each other over the connection that they will use:
// this reveals a transport that accepted a stranger because it connected first. Each direction has
// words of its own, so what a member has heard is of no use to it elsewhere. Pure.

inline constexpr std::size_t kConfirmationBytes = 32;

// What this member says to each other member, by rank.
std::vector<std::uint8_t> ConfirmationsOf(const GroupPlan& plan);

// The ranks whose words, in what this member has heard, are missing (all zeros) or wrong.
struct Unconfirmed {
  std::vector<int> silent;
  std::vector<int> wrong;
};
Unconfirmed FindUnconfirmed(const GroupPlan& plan, const std::vector<std::uint8_t>& heard);

// "the connection of rank 2 is not that member's: ..."; empty: all have confirmed.
std::string Describe(const Unconfirmed& unconfirmed);

}  // namespace espalier
