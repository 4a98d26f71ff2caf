#include "tuner/core/trials/study_plugins.h"

#include <utility>

#include "base/check.h"
#include "tuner/core/samplers/prior.h"

namespace espalier {

std::shared_ptr<const Sampler> SamplerOf(const StudySpec& spec) {
  auto sampler = MakeSampler(spec.sampler.name, spec.sampler.options);
  ESPALIER_CHECK(sampler.ok(), "a study is validated before it is created");
  return samplers::WithPrior(*std::move(sampler), spec.prior);
}

StudyPlugins& PluginsOfStudies::Of(const Study& study) {
  StudyPlugins& plugins = studies_[study.id];
  if (!plugins.sampler) {
    auto pruner = MakePruner(study.spec.pruner.name, study.spec.pruner.options);
    auto terminator = MakeTerminator(study.spec.terminator.name, study.spec.terminator.options);
    ESPALIER_CHECK(pruner.ok() && terminator.ok(), "a study is validated before it is created");
    plugins.sampler = SamplerOf(study.spec);
    plugins.pruner = *std::move(pruner);
    plugins.terminator = *std::move(terminator);
  }
  return plugins;
}

PruneVerdict PluginsOfStudies::Judge(const Study& study, const Curve& trial,
                                     std::span<const Curve> others, std::int64_t max_step,
                                     double pool_share) {
  const Pruner& pruner = *Of(study).pruner;
  // All of its work is done, and there is nothing left to save.
  const bool at_its_end =
      max_step > 0 && !trial.points.empty() && trial.points.back().step >= max_step;
  if (at_its_end && pruner.steps_ascend()) return {};
  return pruner.Judge({.direction = study.spec.direction(),
                       .trial = trial,
                       .others = others,
                       .max_step = max_step,
                       .best_k = study.spec.best_k,
                       .pool_share = pool_share,
                       .other_directions = study.spec.other_directions()});
}

bool PluginsOfStudies::MayDraw(const Study& study) {
  const StudyPlugins& plugins = Of(study);
  return plugins.sampler->draws() && !plugins.exhausted;
}

bool PluginsOfStudies::Exhausted(StudyId study) const {
  const auto known = studies_.find(study);
  return known != studies_.end() && known->second.exhausted;
}

void PluginsOfStudies::Observe(const Change& change) {
  if (const auto study = StudyEndedBy(change)) studies_.erase(*study);
}

}  // namespace espalier
