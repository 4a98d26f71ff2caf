#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/plugin.h"
#include "base/random.h"
#include "search_spaces/search_space.h"
#include "tuner/core/samplers/outside.h"
#include "tuner/core/state/curve.h"
#include "tuner/core/state/like.h"

namespace espalier {

// One trial that ended, or is held back by its pruner, as a sampler sees it.
struct Observation {
  std::int64_t trial_number = 0;
  const Parameters* parameters = nullptr;
  // Final, or the last intermediate value of a pruned trial; NaN if none, and of a failed trial.
  double value = 0;
  bool pruned = false;  // or held back
  std::int64_t last_step = 0;
  // Final ones of the second objective and of further ones; empty: the trial has none.
  std::span<const double> other_values{};
  // How far the trial is from what it has to keep: each at most 0 where it keeps to it, NaN where
  // that is not known. Empty: it has told none.
  std::span<const double> constraints{};
  // When it ended or was held back. By this, then by number, is the order in which results came.
  Time at{};
  // The standard error of its value, as it has told it; NaN: it has not.
  double standard_error = std::numeric_limits<double>::quiet_NaN();
};

struct SamplerInput {
  const SearchSpace& space;
  Direction direction;  // of the first objective
  std::span<const Observation> ended;
  std::span<const Parameters* const> running;
  std::int64_t trial_number;  // of the trial to come, from 0 in its study
  std::stop_token stop{};     // once it asks, what is suggested is of no use to anybody
  // Of the second objective and of further ones.
  std::span<const Direction> other_directions{};
  // The same for all trials of a study: of what they have in common, such as the order of a
  // sequence.
  std::uint64_t study_seed = 0;
  // Trials of another study that is expected to be like this one, and has as many objectives: the
  // best first. Parameters of the space that they lack may have any values.
  std::span<const ScoredTrial> before{};
  // Whether any of `ended` tells of constraints, where the caller knows.
  std::optional<bool> tells_of_constraints{};

  std::size_t objectives() const { return 1 + other_directions.size(); }
};

// Chooses the parameters of a study's next trial. The suggestion follows from the input and from
// the generator alone, which the caller seeds for each trial: what a sampler keeps between calls
// (memo.h) may save it time, and changes nothing. So any number of threads may ask one sampler, and
// a restarted service goes on with the same draws. Parameters in the input that the space does not
// contain (of a user's own trial) are ignored.
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

  // The name of the sampler that this one leaves the suggestion to; empty: it makes it itself.
  virtual std::string_view Chooses(const SamplerInput&) const { return {}; }

  // Whether the sampler uses the values of trials.
  virtual bool learns() const { return false; }

  // Whether it can be asked with several objectives. One that does not learn need not know.
  virtual bool takes_objectives() const { return !learns(); }

  // Whether it heeds what trials tell of their constraints.
  virtual bool takes_constraints() const { return !learns(); }

  // Whether it learns from trials whose parameters were drawn from a person's prior (prior.h).
  virtual bool takes_prior() const { return false; }

  // Whether it learns from trials of another study (SamplerInput::before).
  virtual bool takes_like() const { return false; }

  // InvalidArgument: the sampler has nothing to suggest in such a space; the error names the
  // parameter, and what would be right.
  virtual absl::Status Fits(const SearchSpace&) const { return absl::OkStatus(); }

  // InvalidArgument: its options are for another number of objectives; the error says which.
  virtual absl::Status FitsObjectives(std::size_t) const { return absl::OkStatus(); }

  // Whether the sampler leaves out what was tried, so that it needs the configurations of trials
  // even if it does not learn. Most do so where there is an end to them.
  virtual bool avoids_tried(const SearchSpace& space) const {
    return space.Cardinality().has_value();
  }

  // Whether the sampler makes suggestions at all. If not, clients enqueue all trials of the study,
  // and Suggest is not called.
  virtual bool draws() const { return true; }

  // Of a sampler whose suggestions another process makes: which one. Suggest is not called then.
  virtual const OutsideSampler* outside() const { return nullptr; }
};

// All samplers. Each row is the last function of its sampler's source file.
const PluginTable<Sampler>& Samplers();

// InvalidArgument: the sampler or an option is unknown, or a value is out of range; the error names
// it and what is known.
absl::StatusOr<std::unique_ptr<Sampler>> MakeSampler(std::string_view name, const Options& options);

// The names of the samplers that can do something, for messages: "tpe", "gp".
std::string SamplersThat(bool (Sampler::*can)() const);

}  // namespace espalier
