#include "tuner/core/agents/failed_starts.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

constexpr double kFirstHold_s = 10;  // twice as long each time in a row
constexpr double kLongestHold_s = 300;
constexpr std::size_t kMostTried = 3;  // nodes, where a program may be missing on all

}  // namespace

void FailedStarts::Observe(const Change& change) {
  if (const auto study = StudyEndedBy(change)) places_.erase(*study);
}

void FailedStarts::Started(const Replica& replica) {
  holds_.erase(replica.node);
  Places& places = places_[turn_.TrialAt(replica.trial).study];
  places.good.insert(replica.node);
  places.bad.erase(replica.node);
}

void FailedStarts::Failed(const Replica& gone, const ReplicaExited& exit) {
  if (!exit.node_at_fault) {
    Places& places = places_[turn_.TrialAt(gone.trial).study];
    places.good.erase(gone.node);
    places.bad.insert(gone.node);
    if (!MayStartElsewhere(places)) return;
  }
  HoldBack(gone, exit.error);
}

bool FailedStarts::MayStartElsewhere(const Places& places) const {
  const auto there = [](const Node& node) { return node.connected && !node.draining; };
  const auto is_good = [&](const auto& entry) {
    return there(entry.second) && places.good.contains(entry.first);
  };
  if (std::ranges::any_of(pool_.nodes, is_good)) return true;
  const auto is_untried = [&](const auto& entry) {
    return there(entry.second) && !places.bad.contains(entry.first);
  };
  return places.bad.size() < kMostTried && std::ranges::any_of(pool_.nodes, is_untried);
}

void FailedStarts::HoldBack(const Replica& gone, const std::string& error) {
  const auto node = pool_.nodes.find(gone.node);
  if (node == pool_.nodes.end()) return;
  Hold& hold = holds_[gone.node];
  // Starts that were ordered at the same time fail one after the other.
  if (hold.until <= turn_.now()) {
    const double hold_s =
        std::min(kLongestHold_s, std::ldexp(kFirstHold_s, std::min(hold.in_a_row++, 10)));
    hold.until = After(turn_.now(), hold_s);
    hold.why = absl::StrCat(error, "; it is tried again after ", hold_s, " s");
  }
  std::set<int> slots;
  for (int slot = 0; slot < node->second.slots; ++slot) slots.insert(slot);
  for (const ReplicaId id : pool_.replicas.On(gone.node)) {
    if (id == gone.id) continue;
    std::erase_if(slots, [&](int slot) { return pool_.replicas.at(id).Holds(slot); });
  }
  pool_.HoldBack(gone.node, slots, hold.until, hold.why);
}

}  // namespace espalier
