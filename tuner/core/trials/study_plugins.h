#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "tuner/core/pruners/pruner.h"
#include "tuner/core/samplers/sampler.h"
#include "tuner/core/state/change.h"
#include "tuner/core/terminators/terminator.h"

namespace espalier {

struct StudyPlugins {
  std::shared_ptr<const Sampler> sampler;
  std::unique_ptr<Pruner> pruner;
  std::shared_ptr<const Terminator> terminator;
  bool exhausted = false;  // the sampler has nothing left to try
  bool too_late = false;   // for a new trial to be of use before a limit
};

// A study's sampler, as its trials are drawn by. Requires a valid spec.
std::shared_ptr<const Sampler> SamplerOf(const StudySpec& spec);

// Samplers, pruners and terminators of the studies that have asked for theirs. Not durable; a
// study's are forgotten with its end. One owner.
class PluginsOfStudies {
 public:
  // Good until the study ends. Requires a valid spec.
  StudyPlugins& Of(const Study& study);
  // What its pruner says of one of its trials, beside the others: by their curves, in steps up to
  // `max_step`. One that is there is kept, where steps ascend.
  PruneVerdict Judge(const Study& study, const Curve& trial, std::span<const Curve> others,
                     std::int64_t max_step, double pool_share);
  // Whether its sampler has, or may have, something left to draw.
  bool MayDraw(const Study& study);
  // Whether it is known that there is nothing left.
  bool Exhausted(StudyId study) const;

  void Observe(const Change& change);

 private:
  std::map<StudyId, StudyPlugins> studies_;
};

}  // namespace espalier
