#include "tuner/core/samplers/draw.h"

#include <utility>

namespace espalier {

Drawn MakeDraw(const DrawRequest& request, std::stop_token stop) {
  Random random(request.seed);
  std::optional<Parameters> parameters =
      request.sampler->Suggest({.space = request.space,
                                .direction = request.direction,
                                .ended = request.ended,
                                .running = request.running,
                                .trial_number = request.trial_number,
                                .stop = std::move(stop),
                                .other_directions = request.other_directions,
                                .study_seed = request.study_seed,
                                .before = request.before,
                                .tells_of_constraints = request.tells_of_constraints},
                               random);
  return {.parameters = std::move(parameters), .random = random};
}

}  // namespace espalier
