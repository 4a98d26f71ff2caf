#include "base/rank_blame.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

// SIGABRT is what libraries do of their own where a connection breaks, and SIGTERM a request.
bool KilledByOthers(const RankEnd& end) {
  return end.signal != 0 && end.signal != SIGABRT && end.signal != SIGTERM && end.signal != SIGINT;
}

// Notes have the time of files, which is that of the clock's last tick: several may have the same.
std::pair<std::int64_t, int> Moment(const RankEnd& end) {
  return {end.at_ns, end.nth > 0 ? end.nth : std::numeric_limits<int>::max()};
}

}  // namespace

std::string HowEnded(const RankEnd& end) {
  return end.signal != 0 ? absl::StrCat("was killed by signal ", end.signal)
                         : absl::StrCat("exited with code ", end.exit_code);
}

std::string HowEndedAfter(const RankEnd& end, int left) {
  return absl::StrCat(HowEnded(end), " after rank ", left, " had ended with 0");
}

void PutInOrder(std::span<RankEnd> ends) {
  std::vector<RankEnd*> known;
  for (RankEnd& end : ends) {
    if (end.nth > 0 && end.at_ns != 0 && !end.noted) known.push_back(&end);
  }
  std::ranges::sort(known, std::greater(), &RankEnd::nth);
  std::int64_t next_ns = std::numeric_limits<std::int64_t>::max();
  for (RankEnd* const end : known) {
    end->at_ns = std::min(end->at_ns, next_ns - 1);
    next_ns = end->at_ns;
  }
}

int RankToBlame(std::span<const RankEnd> ends, std::int64_t told_ns) {
  const auto earliest = [&](auto counts) {
    int first = -1;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].well() || ends[i].at_ns > told_ns || !counts(ends[i])) continue;
      if (first < 0 || Moment(ends[i]) < Moment(ends[static_cast<std::size_t>(first)])) {
        first = static_cast<int>(i);
      }
    }
    return first;
  };
  const int first = earliest([](const RankEnd&) { return true; });
  if (first < 0) return -1;
  const RankEnd& of_first = ends[static_cast<std::size_t>(first)];
  if (of_first.noted) return first;
  const int killed = earliest([&](const RankEnd& end) {
    return KilledByOthers(end) && end.at_ns - of_first.at_ns <= kEndSeenWithin_ns;
  });
  return killed < 0 ? first : killed;
}

int RankThatHadLeft(std::span<const RankEnd> ends, int failed) {
  int first = -1;
  std::int64_t before = ends[static_cast<std::size_t>(failed)].at_ns;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (!ends[i].well() || ends[i].at_ns == 0 || ends[i].at_ns >= before) continue;
    before = ends[i].at_ns;
    first = static_cast<int>(i);
  }
  return first;
}

}  // namespace espalier
