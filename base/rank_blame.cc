#include "base/rank_blame.h"

#include <csignal>
#include <cstddef>

namespace espalier {
namespace {

// SIGABRT is what libraries do of their own where a connection breaks, and SIGTERM a request.
bool KilledByOthers(const RankEnd& end) {
  return end.signal != 0 && end.signal != SIGABRT && end.signal != SIGTERM && end.signal != SIGINT;
}

}  // namespace

int RankToBlame(std::span<const RankEnd> ends, std::int64_t told_ns) {
  const auto earliest = [&](auto counts) {
    int first = -1;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].well() || ends[i].at_ns > told_ns || !counts(ends[i])) continue;
      if (first < 0 || ends[i].at_ns < ends[static_cast<std::size_t>(first)].at_ns) {
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
