#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace espalier {

// Where in its program a replica waits for the others of its group. All members come to the same
// places in the same order.
struct ProgramPlace {
  enum class Kind : std::int64_t {
    kNone,        // nowhere in particular: a group forms
    kStep,        // the gradients of a step
    kEvaluation,  // the sums of an evaluation
    kSums,        // those of accumulators
    kEnd,         // the end of the program
    kEpochEnd,    // that of an epoch
  };

  Kind kind = Kind::kNone;
  std::int64_t epoch = 0;
  std::int64_t step = 0;         // the one that is taken, or else the last one that was
  std::int64_t call = 0;         // how many evaluations and sums there were since that step
  std::int64_t accumulator = 0;  // the accumulator that is summed: a number from the program

  static constexpr std::size_t kNumbers = 5;
  std::vector<std::int64_t> ToNumbers() const {
    return std::vector<std::int64_t>{static_cast<std::int64_t>(kind), epoch, step, call,
                                     accumulator};
  }
  // The place of another member, from kNumbers numbers.
  static ProgramPlace Of(const std::int64_t* numbers) {
    return {.kind = static_cast<Kind>(numbers[0]),
            .epoch = numbers[1],
            .step = numbers[2],
            .call = numbers[3],
            .accumulator = numbers[4]};
  }

  std::string text() const {
    switch (kind) {
      case Kind::kNone:
        return "no place";
      case Kind::kStep:
        return absl::StrCat("step ", step);
      case Kind::kEvaluation:
        return absl::StrCat("evaluation ", call, " after step ", step);
      case Kind::kSums:
        return absl::StrCat("the sums of Accumulator ", accumulator, " after step ", step);
      case Kind::kEnd:
        return absl::StrCat("the end of the program after step ", step);
      case Kind::kEpochEnd:
        return absl::StrCat("the end of epoch ", epoch, " after step ", step);
    }
    return "an unknown place";
  }

  friend bool operator==(const ProgramPlace&, const ProgramPlace&) = default;
};

// Why a group at two places cannot go on.
inline std::string PlacesDiffer(int rank, const ProgramPlace& place, int other,
                                const ProgramPlace& others) {
  return absl::StrCat("the replicas' loops differ: replica ", rank, " waits at ", place.text(),
                      ", replica ", other, " at ", others.text(),
                      ": all of them must take the same steps, and evaluate, sum up and leave a "
                      "loop at the same places");
}

}  // namespace espalier
