#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "tuner/core/state/event.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/terminators/terminator.h"
#include "tuner/core/trials/sampler_history.h"
#include "tuner/core/trials/study_plugins.h"
#include "tuner/core/trials/suggested_parameters.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// Studies that end because their terminators say that more trials would gain little. A terminator
// is asked in the step in which a trial has ended. What takes it long is answered beside the
// owner's thread (CoreOptions::plan_aside): one question at a time a study, and of what ends
// meanwhile the next one. A question that a restart loses is asked when the next trial has ended.
// What a terminator lacks to judge is told once in the study's record. One owner.
class Terminations {
 public:
  Terminations(Turn& turn, const CoreOptions& options, PluginsOfStudies& plugins, Trials& trials)
      : turn_(turn), options_(options), plugins_(plugins), trials_(trials) {}

  void On(const TerminatorAnswered& event);

  void Observe(const Change& change);
  // Asks the terminators of the studies of which trials have ended since they were asked.
  void EndTerminated();

 private:
  struct OfStudy {
    std::int64_t under_way = 0;  // the number of the question; 0: none
    bool has_recorded_lack = false;
    std::optional<SearchSpace> searched{};
    SamplerHistory history{};
    SuggestedParameters suggested{};  // of trials that clients run
  };

  void UpdateHistory(const Study& study, OfStudy& own);
  // nullopt: the answer comes later.
  std::optional<TerminatorVerdict> Ask(const Study& study,
                                       const std::shared_ptr<const Terminator>& terminator);
  void Take(const Study& study, const TerminatorVerdict& verdict);

  Turn& turn_;
  const CoreOptions& options_;
  PluginsOfStudies& plugins_;
  Trials& trials_;
  std::set<StudyId> moved_;  // of which a trial has ended
  std::map<StudyId, OfStudy> studies_;
  std::int64_t asked_ = 0;
};

}  // namespace espalier
