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
  std::int64_t batch_size = 0;   // at an epoch's end: of the next one

  static constexpr std::size_t kNumbers = 6;
  std::vector<std::int64_t> ToNumbers() const {
    return std::vector<std::int64_t>{
        static_cast<std::int64_t>(kind), epoch, step, call, accumulator, batch_size};
  }
  // The place of another member, from kNumbers numbers.
  static ProgramPlace Of(const std::int64_t* numbers) {
    return {.kind = static_cast<Kind>(numbers[0]),
            .epoch = numbers[1],
            .step = numbers[2],
            .call = numbers[3],
            .accumulator = numbers[4],
            .batch_size = numbers[5]};
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
  const bool of_batch = place.kind == others.kind && place.batch_size != others.batch_size;
  const auto text_of = [&](const ProgramPlace& at) {
    if (!of_batch) return at.text();
    return absl::StrCat(at.text(), ", with a batch of ", at.batch_size,
                        " samples for the next one");
  };
  return absl::StrCat("the replicas' loops differ: replica ", rank, " waits at ", text_of(place),
                      ", replica ", other, " at ", text_of(others),
                      ": all of them must take the same steps, and evaluate, sum up, leave a loop "
                      "and set the batch size at the same places");
}

}  // namespace espalier
