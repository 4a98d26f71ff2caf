#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/ids.h"
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
  std::shared_ptr<const void> kept_of_ended{};
  std::deque<Parameters> kept_of_running{};
};

// A suggestion, and the generator as the sampler has left it.
struct Drawn {
  std::optional<Parameters> parameters;  // see Sampler::Suggest
  Random random;
};

// Once `stop` is asked for, anything may be returned.
Drawn MakeDraw(const DrawRequest& request, std::stop_token stop);

}  // namespace espalier
