#include "allocator/policies/marginal_gain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "allocator/policies/admission.h"
#include "allocator/policies/board.h"
#include "allocator/policies/settings.h"
#include "tuner/base/status.h"

namespace espalier {

namespace {

struct Settings {
  double min_gain = 0.05;
  double hysteresis = 0.15;
  double min_resize_interval_s = 2;
  double horizon_s = 60;
};

constexpr int kShapesAhead = 3;
constexpr double kRounding = 1e-9;  // gains that differ by less are equal
// Rounds of admitting, giving and moving; two or three are usual.
constexpr int kMaxRounds = 50;

// Sizes worth trying: 1, 2, 3, 4, 6, 8, 12, 16, ... The next one above `slots`.
int NextShape(int slots) {
  int power = 1;
  while (power * 2 <= slots) power *= 2;
  const int between = power + power / 2;
  return slots < between ? between : 2 * power;
}

// Sizes above `slots` up to `cap`: one more, the next shapes, and the cap. Looking further than one
// slot ahead crosses dips, such as the first slot on a second node.
std::vector<int> LargerSizes(int slots, int cap) {
  std::vector<int> sizes;
  if (slots + 1 <= cap) sizes.push_back(slots + 1);
  int shape = slots;
  for (int i = 0; i < kShapesAhead; ++i) {
    shape = NextShape(shape);
    if (shape > slots + 1 && shape <= cap) sizes.push_back(shape);
  }
  return sizes;
}

// A possible growth of one seat.
struct Growth {
  Shares shares;
  double gain = 0;      // in speedup, all slots together
  double per_slot = 0;  // weighted by promise
};

// One allocation under way.
class Division {
 public:
  Division(const Pool& pool, const Settings& settings) : settings_(settings), board_(pool) {}

  std::vector<AllocationDecision> Run() {
    Mend(board_, /*reclaim=*/true);
    for (int round = 0; round < kMaxRounds; ++round) {
      bool changed = AdmitWaiting(board_, /*reclaim=*/true);
      changed |= LetGo();
      changed |= GiveFree();
      changed |= MoveSlots();
      if (!changed) break;
    }
    return board_.Decisions();
  }

 private:
  // Seats that may be resized now for the sake of speed.
  bool MayResize(std::size_t j) const {
    const Seat& seat = board_.seat(j);
    const bool settled =
        seat.job->current.empty() || seat.job->since_resize_s >= settings_.min_resize_interval_s;
    return seat.total > 0 && !seat.job->joining && settled;
  }
  bool MayGrow(std::size_t j) const {
    return MayResize(j) && board_.seat(j).total < GrowthCap(*board_.seat(j).job) &&
           Weight(*board_.seat(j).job) > 0;
  }
  bool MayGive(std::size_t j) const {
    return MayResize(j) && board_.seat(j).total > MinSlots(*board_.seat(j).job);
  }

  double Horizon(std::size_t j) {
    const double left_s = board_.seat(j).job->work_left_s / std::max(1e-9, board_.SpeedupNow(j));
    return left_s > 0 ? std::min(left_s, settings_.horizon_s) : settings_.horizon_s;
  }
  // Weighted progress lost by the pause of a resize. A trial that has no slots yet loses nothing.
  double PauseCost(std::size_t j) {
    const Job& job = *board_.seat(j).job;
    return job.current.empty()
               ? 0
               : Weight(job) * board_.SpeedupNow(j) * std::max(0.0, job.resize_cost_s);
  }

  std::optional<Growth> GrowthTo(std::size_t j, int slots);
  Growth BestGrowth(std::size_t j);
  bool LetGo();
  bool GiveFree();
  bool MoveSlots();
  bool MoveOneTo(std::size_t receiver, const std::vector<std::pair<double, std::size_t>>& givers);
  bool MoveSeveralTo(std::size_t receiver);
  bool Settle(std::size_t receiver, int slots,
              const std::vector<std::pair<std::size_t, Shares>>& given, double loss);

  const Settings settings_;
  Board board_;
};

// The growth to exactly `slots`, if it has a place and every slot is worth having.
std::optional<Growth> Division::GrowthTo(std::size_t j, int slots) {
  std::optional<Shares> shares = board_.Grown(j, slots);
  if (!shares) return std::nullopt;
  const int more = slots - board_.seat(j).total;
  const double gain = board_.SpeedupWith(j, *shares) - board_.SpeedupNow(j);
  if (gain / more < settings_.min_gain - kRounding) return std::nullopt;
  return Growth{*std::move(shares), gain, Weight(*board_.seat(j).job) * gain / more};
}

// The growth on free slots with the greatest weighted gain a slot; none is a gain of zero.
Growth Division::BestGrowth(std::size_t j) {
  Growth best;
  if (!MayGrow(j)) return best;
  const Job& job = *board_.seat(j).job;
  for (const int slots : LargerSizes(board_.seat(j).total, GrowthCap(job))) {
    std::optional<Growth> growth = GrowthTo(j, slots);
    if (!growth || growth->per_slot <= best.per_slot + kRounding) continue;
    if (Weight(job) * growth->gain * Horizon(j) <= PauseCost(j)) continue;
    best = *std::move(growth);
  }
  return best;
}

// Gives up slots that bring less than half of what they would have to bring to be given: the gap
// keeps a trial from growing and shrinking in turn.
bool Division::LetGo() {
  bool changed = false;
  for (std::size_t j = 0; j < board_.size(); ++j) {
    while (MayGive(j)) {
      const int total = board_.seat(j).total;
      const double now = board_.SpeedupNow(j);
      int best = total;
      for (int slots = total - 1; slots >= MinSlots(*board_.seat(j).job); --slots) {
        const double then = board_.SpeedupWith(j, board_.Shrunk(j, slots));
        if ((now - then) / (total - slots) < settings_.min_gain / 2 - kRounding) best = slots;
      }
      if (best == total) break;
      board_.Assign(j, board_.Shrunk(j, best));
      board_.seat(j).lost.push_back(absl::StrFormat("speedup on %d is %.2f, on %d it is %.2f",
                                                    total, now, best, board_.SpeedupNow(j)));
      changed = true;
    }
  }
  return changed;
}

bool Division::GiveFree() {
  if (board_.total_free() == 0) return false;
  bool changed = false;
  std::vector<Growth> growths(board_.size());
  for (std::size_t j = 0; j < board_.size(); ++j) growths[j] = BestGrowth(j);
  std::vector<bool> stale(board_.size(), false);
  while (board_.total_free() > 0) {
    std::size_t best = 0;
    for (std::size_t j = 1; j < growths.size(); ++j) {
      if (growths[j].per_slot > growths[best].per_slot + kRounding) best = j;
    }
    if (growths.empty() || growths[best].per_slot <= 0) break;
    // Free slots only become fewer here, so that a growth worked out earlier is at most too good:
    // it is enough to look again at the one that comes out first.
    if (stale[best]) {
      growths[best] = BestGrowth(best);
      stale[best] = false;
      continue;
    }
    Shares taken = std::move(growths[best].shares);
    board_.seat(best).free_slots_taken += TotalSlots(taken) - board_.seat(best).total;
    board_.Assign(best, std::move(taken));
    growths[best] = BestGrowth(best);
    stale.assign(stale.size(), true);
    stale[best] = false;
    changed = true;
  }
  return changed;
}

// Ends a tried move: the receiver grows if its weighted gain pays for the givers' loss, the margin
// and everybody's pause; else the givers get back what they had.
bool Division::Settle(std::size_t receiver, int slots,
                      const std::vector<std::pair<std::size_t, Shares>>& given, double loss) {
  const Job& job = *board_.seat(receiver).job;
  std::optional<Growth> growth = GrowthTo(receiver, slots);
  const int more = slots - board_.seat(receiver).total;
  bool pays = false;
  if (growth) {
    double horizon_s = Horizon(receiver);
    double pauses = PauseCost(receiver);
    for (const auto& [giver, before] : given) {
      horizon_s = std::min(horizon_s, Horizon(giver));
      pauses += PauseCost(giver);
    }
    const double net = growth->per_slot * more - loss - settings_.hysteresis * std::max(loss, 0.0);
    pays = net > kRounding && net * horizon_s > pauses;
  }
  if (!pays) {
    for (auto it = given.rbegin(); it != given.rend(); ++it) board_.Assign(it->first, it->second);
    return false;
  }
  const std::string why =
      absl::StrFormat("%s of promise %.2f gains %.2f weighted, here %.2f are lost", NameOf(job),
                      job.promise, growth->per_slot * more, loss);
  for (const auto& [giver, before] : given) {
    board_.seat(giver).lost.push_back(why);
    ++board_.seat(receiver).slots_from[NameOf(*board_.seat(giver).job)];
  }
  board_.seat(receiver).free_slots_taken += more - static_cast<int>(given.size());
  board_.Assign(receiver, std::move(growth->shares));
  return true;
}

bool Division::MoveOneTo(std::size_t receiver,
                         const std::vector<std::pair<double, std::size_t>>& givers) {
  const int slots = board_.seat(receiver).total + 1;
  const Shares& own = board_.seat(receiver).shares;
  // The most it could gain: as if the slot were on a node it has.
  const double hoped = Weight(*board_.seat(receiver).job) *
                       (board_.seat(receiver).speedup->At(static_cast<int>(own.size()), slots) -
                        board_.SpeedupNow(receiver));
  for (const auto& [loss, giver] : givers) {
    if (hoped <= loss * (1 + settings_.hysteresis)) break;
    if (giver == receiver) continue;
    const Shares before = board_.seat(giver).shares;
    board_.Assign(giver, board_.Shrunk(giver, board_.seat(giver).total - 1));
    if (Settle(receiver, slots, {{giver, before}}, loss)) return true;
  }
  return false;
}

// Moves as many slots as the next shape needs, for curves with a dip before it.
bool Division::MoveSeveralTo(std::size_t receiver) {
  const int slots = NextShape(board_.seat(receiver).total);
  const int more = slots - board_.seat(receiver).total;
  if (more < 2 || slots > GrowthCap(*board_.seat(receiver).job)) return false;
  std::vector<std::pair<std::size_t, Shares>> given;
  double loss = 0;
  for (int i = board_.total_free(); i < more; ++i) {
    std::optional<std::pair<double, std::size_t>> least;
    for (std::size_t j = 0; j < board_.size(); ++j) {
      if (j == receiver || !MayGive(j)) continue;
      const double missed = LossPerSlot(board_, j, board_.seat(j).total - 1);
      if (!least || missed < least->first) least = {missed, j};
    }
    if (!least) break;
    given.emplace_back(least->second, board_.seat(least->second).shares);
    board_.Assign(least->second,
                  board_.Shrunk(least->second, board_.seat(least->second).total - 1));
    loss += least->first;
  }
  return Settle(receiver, slots, given, loss);
}

// Moves slots from trials that lose little to trials that gain more, best receivers first, until
// no move pays. Each move raises the weighted sum of speedups, so this ends.
bool Division::MoveSlots() {
  bool changed = false;
  for (bool moved = true; moved;) {
    moved = false;
    std::vector<std::pair<double, std::size_t>> givers;     // by loss
    std::vector<std::pair<double, std::size_t>> receivers;  // by gain hoped for, negated
    for (std::size_t j = 0; j < board_.size(); ++j) {
      const Seat& seat = board_.seat(j);
      if (MayGive(j)) givers.emplace_back(LossPerSlot(board_, j, seat.total - 1), j);
      if (!MayGrow(j)) continue;
      double hoped = 0;
      for (const int slots : {seat.total + 1, NextShape(seat.total)}) {
        const double then = board_.seat(j).speedup->At(static_cast<int>(seat.shares.size()), slots);
        hoped = std::max(hoped, (then - board_.SpeedupNow(j)) / (slots - seat.total));
      }
      receivers.emplace_back(-Weight(*seat.job) * hoped, j);
    }
    if (givers.empty()) break;
    std::sort(givers.begin(), givers.end());
    std::sort(receivers.begin(), receivers.end());
    for (const auto& [negated, receiver] : receivers) {
      if (-negated <= givers.front().first * (1 + settings_.hysteresis)) break;
      moved = MoveOneTo(receiver, givers) || MoveSeveralTo(receiver);
      if (moved) break;
    }
    changed |= moved;
  }
  return changed;
}

class MarginalGain : public Policy {
 public:
  explicit MarginalGain(Settings settings) : settings_(settings) {}
  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    return Division(pool, settings_).Run();
  }

 private:
  Settings settings_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> MakeMarginalGain(const Options& options) {
  Settings settings;
  const std::array known = {SettingRow{"min_gain", &settings.min_gain},
                            SettingRow{"hysteresis", &settings.hysteresis},
                            SettingRow{"min_resize_interval_s", &settings.min_resize_interval_s},
                            SettingRow{"horizon_s", &settings.horizon_s}};
  ESPALIER_RETURN_IF_ERROR(ReadSettings("marginal_gain", options, known));
  return std::make_unique<MarginalGain>(settings);
}

}  // namespace espalier
