#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "search_spaces/search_space.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::testing {

// A study of which trials end one after the other, the less the better.
struct TrialsInTurn {
  SearchSpace space;
  std::uint64_t seed = 7;
  std::span<const ScoredTrial> before{};  // of another study
  std::deque<Parameters> tried{};         // a deque: the observations point into it
  std::vector<Observation> ended{};

  // What the sampler suggests for the next one.
  std::optional<Parameters> Ask(const Sampler& sampler) const {
    const auto number = static_cast<std::int64_t>(ended.size());
    Random random(MixSeed(seed, static_cast<std::uint64_t>(number)));
    return sampler.Suggest({.space = space,
                            .direction = Direction::kMinimize,
                            .ended = ended,
                            .running = {},
                            .trial_number = number,
                            .study_seed = seed,
                            .before = before},
                           random);
  }
  void End(Parameters parameters, double value) {
    tried.push_back(std::move(parameters));
    ended.push_back({static_cast<std::int64_t>(ended.size()), &tried.back(), value, false, 1});
  }
};

}  // namespace espalier::testing
