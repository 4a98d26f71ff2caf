#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tuner/core/samplers/draw.h"
#include "tuner/core/state/step.h"
#include "tuner/core/state/trial_draw.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/sampler_history.h"

namespace espalier {

// A trial that is to have parameters.
struct TrialToDraw {
  std::int64_t number = 0;
  Parameters given{};  // some of its own, which are not drawn
};

struct DrawnTrial {
  // All of them, in the order of the space. nullopt: nothing is left to try.
  std::optional<Parameters> parameters;
  std::optional<TrialDraw> draw;        // none: all parameters were given
  std::shared_ptr<const Drawn> made{};  // what it is of; none: all parameters were given
};

// What samplers suggest. A suggestion that takes long is made beside the owner's thread where that
// can be (CoreOptions::plan_aside): one at a time a study, so that each sees the trial of the one
// before it. Not durable: what it was made of is, with the trial (TrialDraw). One owner.
class Draws {
 public:
  Draws(Turn& turn, const CoreOptions& options) : turn_(turn), options_(options) {}

  // What the trial is to run with. nullopt: it is under way, or that of another trial is; DrawMade
  // brings it, and is the moment to ask again. What is there by then is of the history that it was
  // asked for with.
  std::optional<DrawnTrial> Draw(const Study& study, const std::shared_ptr<const Sampler>& sampler,
                                 const TrialToDraw& trial,
                                 const SamplerHistory::KnownTrials& trials);
  // False: nobody waits for it any more.
  bool Take(const DrawMade& event);
  // The trial has these parameters: with it, what its draw has to be stored with.
  void EmitOf(TrialId trial, const DrawnTrial& drawn);

  void Observe(const Change& change);

 private:
  struct OfStudy {
    std::int64_t under_way = 0;     // the number of the request; 0: none
    std::int64_t trial_number = 0;  // of what is under way, or made
    TrialDraw names{};              // what that was asked for with
    std::shared_ptr<const Drawn> made{};
    std::optional<SearchSpace> searched{};  // by the sampler
    SamplerHistory history{};
    // Of a sampler outside: what it has stored with trials, and those that may yet get something.
    OutsideState stored{};
    std::int64_t seen = 0;
    std::vector<std::int64_t> open{};
  };

  void UpdateStored(const Study& study, OfStudy& own) const;
  void Request(const Study& study, OfStudy& own, const std::shared_ptr<const Sampler>& sampler,
               const SamplerInput& input);

  Turn& turn_;
  const CoreOptions& options_;
  std::int64_t asked_ = 0;
  std::map<StudyId, OfStudy> studies_;
};

// Of the generator of the trial's suggestion.
std::uint64_t DrawSeed(const StudySpec& spec, std::int64_t trial_number);

// The parameters that are given, of those that are active, and for the others what was drawn.
Parameters Complete(const SearchSpace& space, const Parameters& given, Drawn drawn,
                    TrialDraw& names);

}  // namespace espalier
