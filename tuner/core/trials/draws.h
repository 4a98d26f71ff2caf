#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "tuner/core/samplers/draw.h"
#include "tuner/core/state/step.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// What samplers suggest. A suggestion that takes long is made beside the owner's thread where that
// can be (CoreOptions::plan_aside): one at a time a study, so that each sees the trial of the one
// before it. Not durable. One owner.
class Draws {
 public:
  Draws(Turn& turn, const CoreOptions& options) : turn_(turn), options_(options) {}

  // What the study's sampler suggests for the trial of this number. nullopt: it is under way, or
  // that of another trial is; DrawMade brings it, and is the moment to ask again. What is there by
  // then is of the history that it was asked for with.
  std::optional<Drawn> Suggest(const Study& study, const std::shared_ptr<const Sampler>& sampler,
                               const SamplerInput& input);
  // False: nobody waits for it any more.
  bool Take(const DrawMade& event);

  void Observe(const Change& change);

 private:
  struct OfStudy {
    std::int64_t under_way = 0;     // the number of the request; 0: none
    std::int64_t trial_number = 0;  // of what is under way, or made
    std::shared_ptr<const Drawn> made{};
    // Those that requests were made of, by number of the trial: what has ended stays as it is.
    std::map<std::int64_t, std::shared_ptr<const KeptTrial>> kept{};
  };

  void Request(const Study& study, OfStudy& own, const std::shared_ptr<const Sampler>& sampler,
               const SamplerInput& input);

  Turn& turn_;
  const CoreOptions& options_;
  std::int64_t asked_ = 0;
  std::map<StudyId, OfStudy> studies_;
};

}  // namespace espalier
