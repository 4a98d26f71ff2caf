#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace espalier {

// How a rank's process has ended.
struct RankEnd {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
  // When it failed: when it noted its exception, else when it had ended, in nanoseconds of one
  // clock for all that are compared. 0: it has not ended.
  std::int64_t at_ns = 0;
  bool noted = false;  // its exception
  int nth = 0;  // of those that ended on its machine, from 1, as the system says; 0: not known

  bool well() const { return exit_code == 0 && signal == 0; }
};

// A process that is killed loses its connections a little before its end is seen, so that another
// rank may fail for it and be seen first.
inline constexpr std::int64_t kEndSeenWithin_ns = 200'000'000;

// "exited with code 3", "was killed by signal 9".
std::string HowEnded(const RankEnd& end);
// The same, of one that may have failed for want of another: "... after rank 1 had ended with 0".
std::string HowEndedAfter(const RankEnd& end, int left);

// Whoever waits for a process may be late, and notice two ends in the wrong order. Moves moments
// back as far as `nth` shows that: those of two ends without a note are in its order then. Pure.
void PutInOrder(std::span<RankEnd> ends);

// The rank whose end is the others' reason, of those that ended badly until `told_ns`, when they
// were told to end: the first one, unless it is one without a note that was closely followed by one
// that was killed by a signal, which no other rank's end brings about. -1: none ended badly by
// then. Pure.
int RankToBlame(std::span<const RankEnd> ends, std::int64_t told_ns);

// The rank that ended well first, if that was before the end of this one, which may have failed for
// it: its connections are gone. -1: none did. Pure.
int RankThatHadLeft(std::span<const RankEnd> ends, int failed);

}  // namespace espalier
