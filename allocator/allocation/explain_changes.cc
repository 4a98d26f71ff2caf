#include "allocator/allocation/explain_changes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/pool/slot_ledger.h"

namespace espalier {

namespace {

// Slots of a node that changed hands: by holder, gained (positive) or lost.
using Changes = std::vector<std::pair<std::size_t, int>>;

std::vector<Changes> ChangesByNode(const Board& board) {
  std::vector<Changes> changes(board.node_count());
  for (std::size_t j = 0; j < board.size(); ++j) {
    std::map<int, int> more;
    for (const Share& s : board.HeldAtFirst(j)) more[s.node] -= s.slots;
    for (const Share& s : board.holder(j).shares) more[s.node] += s.slots;
    for (const auto& [node, slots] : more) {
      if (slots != 0) changes[static_cast<std::size_t>(node)].emplace_back(j, slots);
    }
  }
  return changes;
}

// By giver, then by receiver: slots that passed from one to the other.
using Flows = std::map<std::size_t, std::map<std::size_t, int>>;

Flows Match(Board& board) {
  std::vector<int> free(board.node_count());
  for (std::size_t n = 0; n < board.node_count(); ++n) {
    free[n] = board.draining(n) ? 0 : board.capacity_of(n);
  }
  for (std::size_t j = 0; j < board.size(); ++j) {
    for (const Share& s : board.HeldAtFirst(j)) free[static_cast<std::size_t>(s.node)] -= s.slots;
  }
  Flows flows;
  const std::vector<Changes> by_node = ChangesByNode(board);
  for (std::size_t n = 0; n < by_node.size(); ++n) {
    int at_hand = std::max(0, free[n]);
    auto giver = by_node[n].begin();
    int given = 0;  // of the giver's slots there, those that are matched
    for (const auto& [receiver, gained] : by_node[n]) {
      int wanted = gained;
      const int taken = std::clamp(wanted, 0, at_hand);
      board.holder(receiver).free_slots_taken += taken;
      at_hand -= taken;
      wanted -= taken;
      while (wanted > 0 && giver != by_node[n].end()) {
        const int left = giver->second < 0 ? -giver->second - given : 0;
        const int passed = std::min(left, wanted);
        if (passed > 0) flows[giver->first][receiver] += passed;
        wanted -= passed;
        given += passed;
        if (wanted == 0) break;
        ++giver;
        given = 0;
      }
    }
  }
  return flows;
}

bool Waits(const Board& board, std::size_t j) { return !board.holder(j).job->running; }

// Why the holder gave what it did to those in `receivers`.
void ExplainGiving(Board& board, std::size_t giver, const std::map<std::size_t, int>& receivers,
                   double lost) {
  std::vector<std::string>& why = board.holder(giver).lost;
  std::vector<std::string> gains;
  for (const auto& [receiver, slots] : receivers) {
    const Holder& holder = board.holder(receiver);
    const double gained =
        holder.weight *
        (board.SpeedupNow(receiver) - board.SpeedupWith(receiver, board.HeldAtFirst(receiver)));
    const bool grew = holder.total > TotalSlots(board.HeldAtFirst(receiver));
    if (Waits(board, receiver)) {
      why.push_back(absl::StrCat("makes room for waiting ", NameOf(*holder.job)));
    } else if (grew && gained > 0) {
      gains.push_back(absl::StrFormat("%s of promise %.2f gains %.2f weighted", NameOf(*holder.job),
                                      holder.job->promise, gained));
    } else {
      why.push_back(absl::StrCat("makes room for ", NameOf(*holder.job)));
    }
  }
  if (gains.empty()) return;
  why.push_back(absl::StrFormat("%s, here %.2f are lost", absl::StrJoin(gains, ", "), lost));
}

// With all that it was shown with, what is lost included.
double SpeedupAsShown(const Board& board, std::size_t j) {
  const Holder& holder = board.holder(j);
  const Placement& shown = holder.job->current;
  if (shown.empty()) return 0;
  const Shares& left = board.HeldAtFirst(j);
  const int type = board.type_of(left.empty() ? holder.shares : left);
  return holder.speedup->At(static_cast<int>(shown.size()), TotalSlots(shown),
                            type < 0 ? "" : board.types()[static_cast<std::size_t>(type)]);
}

// `from`: slots by holder.
void SetFigures(Board& board, std::size_t j, const std::map<std::size_t, int>& from) {
  Holder& holder = board.holder(j);
  const double then = SpeedupAsShown(board, j);
  const double now = board.SpeedupNow(j);
  AllocationFigures& figures = holder.figures.emplace();
  figures.promise = KeptFigure(holder.job->promise);
  figures.speedup_before = KeptFigure(then);
  figures.speedup_after = KeptFigure(now);
  figures.gain = KeptFigure(holder.weight * (now - then));
  figures.resize_cost_s = holder.job->current.empty() ? 0 : KeptFigure(holder.job->resize_cost_s);
  for (const auto& [giver, slots] : from) {
    const Job& job = *board.holder(giver).job;
    figures.from.push_back({.trial = job.id, .slots = slots, .promise = KeptFigure(job.promise)});
  }
}

}  // namespace

void ExplainChanges(Board& board) {
  const Flows flows = Match(board);
  std::map<std::size_t, std::map<std::size_t, int>> from;  // by receiver, then by giver
  for (const auto& [giver, receivers] : flows) {
    for (const auto& [receiver, slots] : receivers) {
      board.holder(receiver).slots_from[NameOf(*board.holder(giver).job)] += slots;
      from[receiver][giver] += slots;
    }
  }
  for (std::size_t j = 0; j < board.size(); ++j) {
    Holder& holder = board.holder(j);
    const Shares& before = board.HeldAtFirst(j);
    if (!board.AsShown(j, holder.shares)) SetFigures(board, j, from[j]);
    if (before.empty() || holder.shares == before) continue;
    const int total = TotalSlots(before);
    const double then = board.SpeedupWith(j, before);
    const double now = board.SpeedupNow(j);
    const auto to = flows.find(j);
    if (holder.total == total && now > then) {
      holder.lost.push_back(absl::StrFormat("speedup %.2f -> %.2f", then, now));
    } else if (holder.total <= total && to != flows.end() && holder.lost.empty()) {
      ExplainGiving(board, j, to->second, holder.weight * (then - now));
    }
    if (holder.total < total && holder.lost.empty()) {
      holder.lost.push_back(absl::StrFormat("speedup on %d is %.2f, on %d it is %.2f", total, then,
                                            holder.total, now));
    }
  }
}

}  // namespace espalier
