#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/plugin.h"
#include "search_spaces/search_space.h"
#include "tuner/core/samplers/sampler.h"
#include "tuner/core/state/curve.h"
#include "tuner/core/state/terminator_verdict.h"

namespace espalier {

// What a study has come to. `ended` are its trials that have ended, in any order.
struct TerminatorInput {
  const SearchSpace& space;
  Direction direction = Direction::kMinimize;
  std::span<const Observation> ended;
  std::uint64_t seed = 0;  // of what is drawn
  std::stop_token stop{};  // once it asks, the answer is of no use to anybody
};

// Says whether a study has little to gain from more trials, each time that one of its trials has
// ended. Pure and without state: the same input gives the same answer, and the order of `ended`
// does not matter. Const calls may run on any thread.
class Terminator {
 public:
  virtual ~Terminator() = default;

  virtual TerminatorVerdict Judge(const TerminatorInput& input) const = 0;

  // About how long Judge takes, in evaluations of one kernel on one axis (tens of ns each).
  virtual double Work(const TerminatorInput&) const { return 0; }

  // InvalidArgument: the terminator can say nothing of a study that searches such a space; the
  // error says what would be right.
  virtual absl::Status Fits(const SearchSpace&) const { return absl::OkStatus(); }
};

// All terminators. Each row is the last function of its terminator's source file.
const PluginTable<Terminator>& Terminators();

// InvalidArgument: the terminator or an option is unknown, or a value is out of range; the error
// names it and what is known.
absl::StatusOr<std::unique_ptr<Terminator>> MakeTerminator(std::string_view name,
                                                           const Options& options);

}  // namespace espalier
