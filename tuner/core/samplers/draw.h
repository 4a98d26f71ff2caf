#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier {

// What an observation looks into, for requests that outlive the state.
struct KeptTrial {
  Parameters parameters;
  std::vector<double> other_values;
  std::vector<double> constraints;
};

// A suggestion to be made on any thread: all that it is made of, as it was when it was asked for.
// Not copied: `ended` and `running` look into what it keeps.
struct DrawRequest {
  DrawRequest() = default;
  DrawRequest(const DrawRequest&) = delete;
  DrawRequest& operator=(const DrawRequest&) = delete;

  std::int64_t number = 0;  // of the request
  StudyId study;
  std::string study_name;
  std::shared_ptr<const Sampler> sampler;
  SearchSpace space;
  Direction direction = Direction::kMinimize;
  std::vector<Direction> other_directions;
  std::vector<Observation> ended;
  std::vector<const Parameters*> running;
  std::int64_t trial_number = 0;
  std::uint64_t seed = 0;  // of the generator
  std::uint64_t study_seed = 0;
  std::vector<ScoredTrial> before;
  std::optional<bool> tells_of_constraints;  // as in SamplerInput
  std::shared_ptr<const void> kept_of_ended{};
  std::deque<Parameters> kept_of_running{};
  // For samplers that are asked outside: whose `running` are, ascending, those of `ended` that are
  // held back and may change, ascending, and what the sampler has stored.
  std::vector<std::int64_t> running_numbers{};
  std::vector<std::int64_t> held_numbers{};
  OutsideState stored{};
};

// A suggestion, and the generator as the sampler has left it.
struct Drawn {
  std::optional<Parameters> parameters;  // see Sampler::Suggest
  Random random;
  // What a sampler outside stores with the trial and the study, each the JSON of an object; empty:
  // nothing, of a study nothing new.
  std::string stored_of_trial{};
  std::string stored_of_study{};
};

// The suggestion of a sampler outside. Cancelled: nobody made it; else an error says to people why
// there will be none. Called once, on any thread.
using OutsideAnswer = std::function<void(absl::StatusOr<Drawn>)>;

// Not for samplers that are asked outside. Once `stop` is asked for, anything may be returned.
Drawn MakeDraw(const DrawRequest& request, std::stop_token stop);

}  // namespace espalier
