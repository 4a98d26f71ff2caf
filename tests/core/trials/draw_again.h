#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "tuner/core/samplers/draw.h"
#include "tuner/core/trials/draws.h"
#include "tuner/core/trials/searched_space.h"
#include "tuner/core/trials/study_plugins.h"
#include "tuner/core/trials/suggested_parameters.h"

namespace espalier {

// The trial as it was when it was held back with its value of this step.
inline Trial HeldAt(Trial trial, std::int64_t step) {
  while (!trial.values.empty() && trial.values.back().step > step) trial.values.pop_back();
  trial.state = TrialState::kPaused;
  trial.value.reset();
  return trial;
}

// The parameters of the study's trials, drawn again from the record alone: from what it says that
// each trial was drawn from, by a sampler that has drawn nothing before.
class DrawAgain {
 public:
  DrawAgain(const TunerState& state, const Study& study) : state_(state), study_(study) {
    state.ForEachTrial(study, [&](const Trial& trial) {
      parameters_.push_back(study.spec.by_clients() ? *suggested_.Of(trial, study)
                                                    : trial.parameters);
    });
  }

  const Parameters& Recorded(const Trial& trial) const { return parameters_.at(Place(trial)); }

  Parameters operator()(const Trial& trial) const {
    const TrialDraw draw = *ReadTrialDraw(*trial.draw);
    std::deque<Trial> held;
    DrawRequest request;
    auto at = draw.held_back.begin();
    for (std::int64_t i = 0; i < draw.known; ++i) {
      const Trial& known = state_.trials.at(study_.trials.at(static_cast<std::size_t>(i)));
      if (known.lineage->cloned()) continue;
      const Parameters& with = parameters_.at(Place(known));
      if (at != draw.held_back.end() && at->first == i) {
        const Trial& then = held.emplace_back(HeldAt(known, (at++)->second));
        request.ended.push_back(ObservationOf(then, &with, true));
      } else if (Holds(draw.running, i)) {
        request.running.push_back(&with);
      } else if (!Holds(draw.left_out, i)) {
        request.ended.push_back(ObservationOf(known, &with, false));
      }
    }
    const StudySpec& spec = study_.spec;
    request.sampler = SamplerOf(spec);
    request.space = SearchedSpace(spec);
    request.direction = spec.direction();
    request.other_directions = {spec.other_directions().begin(), spec.other_directions().end()};
    request.trial_number = trial.number;
    request.seed = DrawSeed(spec, trial.number);
    request.study_seed = spec.seed;
    request.before = spec.like.trials;
    Parameters given;
    for (const int place : draw.given) {
      const std::string& name = spec.space.dimensions().at(static_cast<std::size_t>(place)).name;
      given.push_back({name, *Find(Recorded(trial), name)});
    }
    TrialDraw names;
    return Complete(spec.space, given, MakeDraw(request, {}), names);
  }

 private:
  static std::size_t Place(const Trial& trial) { return static_cast<std::size_t>(trial.number); }

  const TunerState& state_;
  const Study& study_;
  SuggestedParameters suggested_;
  std::vector<Parameters> parameters_;  // by number
};

}  // namespace espalier
