#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include "base/plugin.h"
#include "base/random.h"
#include "search_spaces/search_space.h"
#include "tuner/core/state/curve.h"

namespace espalier {

// One trial that ended, or is held back by its pruner, as a sampler sees it.
struct Observation {
  std::int64_t trial_number = 0;
  const Parameters* parameters = nullptr;
  // Final, or the last intermediate value of a pruned trial; NaN if none, and of a failed trial.
  double value = 0;
  bool pruned = false;  // or held back
  std::int64_t last_step = 0;
};

struct SamplerInput {
  const SearchSpace& space;
  Direction direction;
  std::span<const Observation> ended;
  std::span<const Parameters* const> running;
  std::int64_t trial_number;  // of the trial to come, from 0 in its study
  std::stop_token stop{};     // once it asks, what is suggested is of no use to anybody
};

// Chooses the parameters of a study's next trial. Samplers keep nothing between calls: the
// suggestion follows from the input and from the generator, which the caller seeds for each trial.
// So any number of threads may ask one sampler, and a restarted service goes on with the same
// draws. Parameters in the input that the space does not contain (of a user's own trial) are
// ignored.
class Sampler {
 public:
  virtual ~Sampler() = default;

  // Every active parameter of the space, in its order, with a value that the space contains.
  // nullopt: every configuration has been tried, if only by a trial that failed, or is running, so
  // that no further trial makes sense.
  virtual std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const = 0;

  // About how long Suggest takes, in evaluations of one kernel on one axis (tens of ns each). What
  // is done once a trial of the input, as for any sampler, does not count.
  virtual double Work(const SamplerInput&) const { return 0; }

  // Whether the sampler uses the values of trials, and so needs one direction.
  virtual bool learns() const { return false; }

  // Whether the sampler leaves out what was tried, so that it needs the configurations of trials
  // even if it does not learn. Most do so where there is an end to them.
  virtual bool avoids_tried(const SearchSpace& space) const {
    return space.Cardinality().has_value();
  }

  // Whether the sampler makes suggestions at all. If not, clients enqueue all trials of the study,
  // and Suggest is not called.
  virtual bool draws() const { return true; }
};

// All samplers. Each row is the last function of its sampler's source file.
const PluginTable<Sampler>& Samplers();

// InvalidArgument: the sampler or an option is unknown, or a value is out of range; the error names
// it and what is known.
absl::StatusOr<std::unique_ptr<Sampler>> MakeSampler(std::string_view name, const Options& options);

}  // namespace espalier
