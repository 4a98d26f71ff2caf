#include "allocator/pool/admission.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace espalier {

namespace {

bool MayGive(const Holder& holder) {
  return !holder.job->joining && holder.total > MinSlots(*holder.job);
}

// What it has left when it has given as little as it can.
int WithOneFewer(const Holder& holder) {
  const int fewer = LargestSize(*holder.job, holder.total - 1);
  return fewer > 0 ? fewer : holder.total - 1;
}

// What each trial would miss a slot if it gave as few as it can, remembered while it holds as many
// as it did.
class Losses {
 public:
  explicit Losses(Board& board) : board_(&board), known_(board.size()) {}

  // The trial that misses one slot least, among those that may give one.
  std::optional<std::size_t> LeastMissed(std::size_t beside) {
    std::optional<std::size_t> least;
    double least_loss = 0;
    for (std::size_t j = 0; j < board_->size(); ++j) {
      if (j == beside || !MayGive(board_->holder(j))) continue;
      const double loss = Of(j);
      // Among equals the one submitted last gives: the earlier ones are closer to their end.
      if (!least || loss <= least_loss) {
        least = j;
        least_loss = loss;
      }
    }
    return least;
  }

 private:
  struct Known {
    int total = -1;
    std::size_t nodes = 0;
    double loss = 0;
  };

  double Of(std::size_t j) {
    const Holder& holder = board_->holder(j);
    Known& known = known_[j];
    if (known.total != holder.total || known.nodes != holder.shares.size()) {
      known = {holder.total, holder.shares.size(), LossPerSlot(*board_, j, WithOneFewer(holder))};
    }
    return known.loss;
  }

  Board* board_;
  std::vector<Known> known_;
};

int Reclaimable(const Board& board, std::size_t beside) {
  int slots = 0;
  for (std::size_t j = 0; j < board.size(); ++j) {
    if (j == beside || !MayGive(board.holder(j))) continue;
    slots += board.holder(j).total - MinSlots(*board.holder(j).job);
  }
  return slots;
}

// Brings the trial up to `slots`, taking slots from others, from each as few as it can give, while
// it does not fit. All or nothing.
bool BringUpTo(Board& board, Losses& losses, std::size_t j, int slots, bool reclaim) {
  const int wanted = slots - board.holder(j).total;
  const int reachable = board.total_free() + (reclaim ? Reclaimable(board, j) : 0);
  if (wanted > reachable) return false;
  struct Gift {
    std::size_t giver;
    Shares before;  // what it had
    int slots;
  };
  std::vector<Gift> taken;
  std::optional<Shares> grown;
  while (!(grown = board.Grown(j, slots))) {
    const auto giver = reclaim ? losses.LeastMissed(j) : std::nullopt;
    if (!giver) break;
    const Holder& from = board.holder(*giver);
    const int left = WithOneFewer(from);
    taken.push_back({*giver, from.shares, from.total - left});
    board.Assign(*giver, board.Shrunk(*giver, left));
  }
  if (!grown) {
    for (auto it = taken.rbegin(); it != taken.rend(); ++it) board.Assign(it->giver, it->before);
    return false;
  }
  board.Assign(j, *std::move(grown));
  const std::string room =
      absl::StrCat("makes room for ", board.holder(j).job->running ? "" : "waiting ",
                   NameOf(*board.holder(j).job));
  // More may have been taken than needed, to free the right node; what is over stays free.
  int from_others = 0;
  for (const auto& [giver, before, given] : taken) {
    std::vector<std::string>& lost = board.holder(giver).lost;
    if (std::find(lost.begin(), lost.end(), room) == lost.end()) lost.push_back(room);
    const int used = std::min(given, wanted - from_others);
    if (used == 0) continue;
    board.holder(j).slots_from[NameOf(*board.holder(giver).job)] += used;
    from_others += used;
  }
  board.holder(j).free_slots_taken += wanted - from_others;
  return true;
}

// Takes one slot off the node from whoever there misses it least; with nobody there above the
// minimum, the least promising trial loses all it has there.
void RelieveNode(Board& board, int node) {
  std::optional<std::size_t> giver;
  double giver_loss = 0;
  bool giver_pauses = false;
  for (std::size_t j = 0; j < board.size(); ++j) {
    const Holder& holder = board.holder(j);
    const bool here = std::any_of(holder.shares.begin(), holder.shares.end(),
                                  [node](const Share& s) { return s.node == node; });
    if (!here) continue;
    const bool pauses = holder.total <= MinSlots(*holder.job);
    const double loss = pauses ? holder.weight : LossPerSlot(board, j, holder.total - 1);
    if (!giver || std::pair(pauses, loss) <= std::pair(giver_pauses, giver_loss)) {
      giver = j;
      giver_loss = loss;
      giver_pauses = pauses;
    }
  }
  Holder& holder = board.holder(*giver);
  Shares shares = holder.shares;
  const auto at =
      std::find_if(shares.begin(), shares.end(), [node](const Share& s) { return s.node == node; });
  at->slots -= giver_pauses ? at->slots : 1;
  if (at->slots == 0) shares.erase(at);
  const std::string why = board.node_name(static_cast<std::size_t>(node)) + " has fewer slots";
  if (std::find(holder.lost.begin(), holder.lost.end(), why) == holder.lost.end()) {
    holder.lost.push_back(why);
  }
  holder.damaged = true;
  board.Assign(*giver, std::move(shares));
}

// Moves the trial off nodes that are draining: as many slots elsewhere if they are free, at least
// its minimum if that can be had. Otherwise it stays until the node is gone.
void LeaveDraining(Board& board, Losses& losses, std::size_t j, bool reclaim) {
  const Shares before = board.holder(j).shares;
  const int total = board.holder(j).total;
  Shares staying;
  std::string why;
  for (const Share& share : before) {
    const auto node = static_cast<std::size_t>(share.node);
    if (!board.draining(node)) {
      staying.push_back(share);
    } else if (why.empty()) {
      why = board.node_name(node) + " is draining";
    }
  }
  if (why.empty()) return;
  const int kept = TotalSlots(staying);
  board.Assign(j, std::move(staying));
  const int least = MinSlots(*board.holder(j).job);
  for (int slots = total; slots > kept; --slots) {
    if (slots < least) break;
    if (!MayHold(*board.holder(j).job, slots)) continue;
    if (std::optional<Shares> moved = board.Grown(j, slots)) {
      board.Assign(j, *std::move(moved));
      board.holder(j).free_slots_taken += slots - kept;
      break;
    }
  }
  const int fits = LargestSize(*board.holder(j).job, board.holder(j).total);
  if (fits > 0 && fits < board.holder(j).total) board.Assign(j, board.Shrunk(j, fits));
  const bool gone = board.holder(j).total >= least ||
                    (reclaim && BringUpTo(board, losses, j, least, /*reclaim=*/true));
  if (gone) {
    board.holder(j).lost.push_back(why);
  } else {
    board.Assign(j, before);
  }
}

// Who has more than it may hold, or a number between two of its sizes, gives what is over. Below
// its least, see Mend.
void BringDownToSize(Board& board, std::size_t j) {
  Holder& holder = board.holder(j);
  const Job& job = *holder.job;
  const int fits = LargestSize(job, holder.total);
  if (fits == holder.total || fits == 0) return;
  // What has lost slots has to be changed anyhow.
  if (job.joining && (job.sizes.empty() || !holder.damaged)) return;
  holder.lost.push_back(job.sizes.empty() || job.pinned_slots > 0
                            ? absl::StrFormat("may hold at most %d", fits)
                            : absl::StrCat("its sizes are ", SizesText(job.sizes)));
  board.Assign(j, board.Shrunk(j, fits));
}

}  // namespace

double LossPerSlot(Board& board, std::size_t j, int slots) {
  const double lost = board.SpeedupNow(j) - board.SpeedupWith(j, board.Shrunk(j, slots));
  return board.holder(j).weight * lost / (board.holder(j).total - slots);
}

void Mend(Board& board, bool reclaim) {
  Losses losses(board);
  for (std::size_t n = 0; n < board.node_count(); ++n) {
    while (board.free_on(n) < 0) RelieveNode(board, static_cast<int>(n));
  }
  for (std::size_t j = 0; j < board.size(); ++j) BringDownToSize(board, j);
  for (std::size_t j = 0; j < board.size(); ++j) {
    Holder& holder = board.holder(j);
    const int least = MinSlots(*holder.job);
    if (holder.total == 0 || holder.total >= least) continue;
    // One that is pinned to more than it has trains on meanwhile.
    const bool below = holder.total < holder.job->min_slots;
    if ((!holder.damaged && !below) || BringUpTo(board, losses, j, least, reclaim)) continue;
    if (below) holder.lost.push_back(absl::StrFormat("has fewer than its minimum of %d", least));
    board.Assign(j, {});
  }
  for (std::size_t j = 0; j < board.size(); ++j) {
    if (!board.holder(j).job->joining) LeaveDraining(board, losses, j, reclaim);
  }
}

bool AdmitWaiting(Board& board, bool reclaim) {
  bool changed = false;
  Losses losses(board);
  for (std::size_t j = 0; j < board.size(); ++j) {
    const Holder& holder = board.holder(j);
    const int least = MinSlots(*holder.job);
    const bool left_alone = holder.job->joining && !holder.damaged;
    if (holder.total >= least || least > board.largest_hold(j) || left_alone) continue;
    const bool admitted = BringUpTo(board, losses, j, least, reclaim);
    changed |= admitted;
    // Those behind it wait too, or a stream of small trials would keep a large one out for ever.
    if (!admitted && holder.total == 0) break;
  }
  return changed;
}

}  // namespace espalier
