#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuner/core/state/event.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// So many ranks may one program have.
inline constexpr int kMaxRanks = 4096;
// What ranks have reported is kept of so many steps, and of fewer where it is more values than
// these, but for those of the newest step.
inline constexpr std::size_t kRankStepsKept = 64;
inline constexpr std::size_t kRankValuesKept = 4096;
// In place of a step: the program's final value.
inline constexpr std::int64_t kFinalStep = kMaxStep + 1;

// What the ranks of one program report, and what they are told. A trial is one, however many ranks
// its program has: they count as one report for each step, and get the same verdict at it, so that
// none leaves while another waits for it in a collective call. All that this goes by is durable.
class RankReports {
 public:
  explicit RankReports(Turn& turn) : turn_(turn) {}

  // Not OK: these are no ranks of a program.
  static absl::Status Check(const ProgramRank& from);
  // The refusal of a value unlike what rank `before` has reported; none: it is not known which.
  static absl::Status Unlike(const Trial& trial, std::int64_t step, const ProgramRank& from,
                             double value, std::optional<int> before, double told);

  struct Taken {
    // By step, ascending: what counts from now on. One of kFinalStep is the final value.
    std::vector<std::pair<std::int64_t, double>> values;
    std::string note;  // why the report does not count; empty: it does, or another one like it
  };
  // A rank reports. The first report of a step counts, and others like it do not count again; an
  // unlike one is refused. In a study that takes the mean of the ranks, a step counts once all of
  // them have reported it; steps before it that some have not are the mean of those that have.
  absl::StatusOr<Taken> Take(const Trial& trial, const ProgramRank& from, std::int64_t step,
                             double value);
  // The program has come to its end: the means of what is left.
  std::vector<std::pair<std::int64_t, double>> TakeRest(const Trial& trial) const;

  // Whether it is yes at the step. The first that asks at it fixes it, by `yes_now`, for all; a
  // step before one at which some were told to go on is one to go on at.
  bool Answer(const Trial& trial, Question question, std::int64_t step,
              const std::function<bool()>& yes_now);

 private:
  // Counts the steps of `steps` up to the last, as far as they have not.
  static void CountUpTo(const Trial& trial, RankValues::const_iterator last,
                        std::vector<std::pair<std::int64_t, double>>& values);
  void Forget(const Trial& trial, bool mean, Taken& taken);

  Turn& turn_;
};

}  // namespace espalier
