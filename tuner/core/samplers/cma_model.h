#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "search_spaces/search_space.h"
#include "tuner/core/samplers/cma_es.h"
#include "tuner/core/samplers/cma_margin.h"
#include "tuner/core/samplers/numeric_axis.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {

enum class CmaRestart {
  kNone,
  kIpop,   // Auger and Hansen 2005: each start has a population several times as large
  kBipop,  // Hansen 2009: such starts, and small ones as long as they have had fewer trials
};

struct CmaSettings {
  std::size_t startup_trials = 1;
  std::size_t population = 0;  // 0: by the dimensions
  double sigma = 0;            // 0: a sixth of each parameter's range
  CmaVariant variant = CmaVariant::kFull;
  bool margin = false;
  CmaRestart restart = CmaRestart::kNone;
  double restart_factor = 2;  // of the population
};

// The parameters of a space that the model has: numbers that are always there.
class CmaSpace {
 public:
  CmaSpace(const SearchSpace& space, bool margin);

  std::size_t dimensions() const { return axes_.size(); }
  const NumericAxis& axis(std::size_t i) const { return axes_[i]; }
  std::size_t place_in_space(std::size_t i) const { return places_[i]; }
  const std::vector<SteppedDimension>& stepped() const { return stepped_; }
  const SearchSpace& space() const { return *space_; }

 private:
  const SearchSpace* space_;
  std::vector<NumericAxis> axes_;
  std::vector<std::size_t> places_;        // of the dimensions in the space, by axis
  std::vector<SteppedDimension> stepped_;  // with margin: those of few values
};

// One number of a trial, as far as the model looks at it. Equal ones have equal places.
struct SeenNumber {
  double number = 0;
  std::size_t kind = std::variant_npos;  // alternative of ParameterValue; npos: none that is finite

  friend bool operator==(const SeenNumber&, const SeenNumber&) = default;
};

// One result that the model has taken.
struct TakenTrial {
  std::int64_t trial_number = 0;
  double value = 0;  // or NaN
  bool pruned = false;
  std::int64_t last_step = 0;
  bool counts = false;           // is of the space
  std::vector<SeenNumber> seen;  // by axis
};

// What follows from the results of a study up to some point: the distribution from which its next
// trials are drawn. Results are taken in the order in which they came, in generations as large as
// the population, whoever chose their parameters and under whichever generation. Immutable.
struct CmaModel {
  // What it was made of.
  SearchSpace space;
  Direction direction = Direction::kMinimize;
  std::uint64_t study_seed = 0;
  std::shared_ptr<const std::vector<ScoredTrial>> before;  // of another study
  std::vector<std::shared_ptr<const std::vector<TakenTrial>>> generations;
  std::size_t taken = 0;  // results in all of them

  CmaEs cma;
  std::optional<CmaMargin> margin{};
  // Of the starts so far.
  std::uint64_t starts = 0;
  std::uint64_t large_starts = 0;
  bool small = true;
  std::size_t trials_of_small = 0;
  std::size_t trials_of_large = 0;
  std::size_t first_population = 0;
};

// Whether trials of another study have numbers that the model has.
bool TellsBefore(const SamplerInput& input, const CmaSpace& space);

// Whether a model seems to be of the results with which an input begins: by all but parameters.
bool SeemsOf(const SamplerInput& input, const CmaModel& known);

// The model of the results in an input. `known` is one that was made with the same settings, of any
// input, or null: where the results begin with those it was made of, it is brought up to date.
// Requires a space with dimensions. Once the input's stop is asked for, anything may be returned.
std::shared_ptr<const CmaModel> ModelOf(const SamplerInput& input, const CmaSpace& space,
                                        const CmaSettings& settings,
                                        std::shared_ptr<const CmaModel> known);

}  // namespace espalier::samplers
