#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/random.h"
#include "tuner/core/client_slots/client_slot_desk.h"
#include "tuner/core/estimates/compared_curves.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/population/score_changes.h"
#include "tuner/core/population/truncation.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/study_plugins.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// Population-based training (Jaderberg et al. 2017, arXiv:1711.09846): a member of a study's
// population that is among the worst at equal steps ends as PRUNED, and in the same step a clone of
// one of the best, with some parameters changed, is made in its place. So parameters and state are
// always of one moment of one trial, which has both for all of its life, and the record is the
// clones' lineage.
//
// Whenever a member comes to a multiple of the interval, all are compared that have come there. One
// that came first may be found among the worst when others have come after it, or have ended before
// that: it is replaced then, also while it is paused. Nobody takes over from a member that has come
// to its end. Where none of the best has saved a checkpoint yet, the worst waits for one until it
// is compared the next time, and takes over if it is still worse then. Nothing of this is durable:
// what was compared last is compared once more after a restart of the service, and after a stop of
// the study. What is drawn follows from the study's seed, the member, the step and those that had
// come, and with PB2 from what all had told by then. Where there are more members than slots, one
// that is compared, and stays, gives its slots to those that wait and are an interval behind:
// members go forward together. So do clones. One owner.
class Populations {
 public:
  Populations(Turn& turn, PoolState& pool, PluginsOfStudies& plugins, CurvesOfStudies& curves,
              Trials& trials, const ClientSlotDesk& client_slots)
      : turn_(turn),
        pool_(pool),
        plugins_(plugins),
        curves_(curves),
        trials_(trials),
        client_slots_(client_slots) {}

  void Observe(const Change& change);
  // Compares those that have reported since the last time, and looks who is to be replaced next.
  void Compare();
  // Whether the member is among the worst that have come as far, so that it would be replaced if
  // all were compared now. Slots that it does not have yet would be spent on what is thrown away.
  bool WillBeReplaced(TrialId id) const { return will_be_replaced_.contains(id); }

 private:
  // A member that takes over from another at a step where they were compared.
  struct Exploit {
    TrialId loser;
    TrialId winner;
    std::int64_t step = 0;
    bool has_saved = false;  // the winner: else the loser waits for its first checkpoint
    Random random;           // draws what it goes on with
  };
  struct Ranks {
    Ranking ranking;
    std::vector<Ranking::Place> losers;
  };
  // Of the best, those from which somebody may take over: who has saved, and who has yet to.
  struct Winners {
    std::vector<TrialId> saved;
    std::vector<TrialId> to_save;          // or to ask whether to
    std::optional<TrialId> never_to_save;  // one that will not, so that nobody can
  };

  void NoteEnd(const Trial& trial);
  void NoteThatMaySave(const Change& change);
  void ForgetDeleted();
  // Which steps a study's members are to be compared at: multiples of the interval.
  std::optional<std::int64_t> TakeStepsCome(const Trial& member, std::size_t before,
                                            std::set<std::int64_t>& steps);
  void TakeStepsBeyond(const Study& study, std::int64_t step, std::set<std::int64_t>& steps);
  void TakeUnsure(std::map<StudyId, std::set<std::int64_t>>& due);
  // Replaces those that are among the worst of all that have come to `step`.
  void CompareAt(const Study& study, std::int64_t step);
  void CompareAwaiting(const Study& study);
  std::vector<Exploit> ExploitsAt(const Study& study, std::int64_t step);
  Ranks RanksAt(const Study& study, std::int64_t step);
  Winners WinnersFor(const Study& study, const Ranks& ranks, const Ranking::Place& loser);
  void CarryOut(const Study& study, std::vector<Exploit> exploits);
  void Await(const Exploit& exploit);
  // `members` are what a bandit learns from, and come to be as they are afterwards; none: nobody
  // asks it.
  void Replace(Exploit& exploit, std::vector<PopulationMember>& members);
  bool CanGiveItsFolder(const Trial& winner) const;
  void TellThatItNeverSaves(const Trial& winner);
  // What the clone trains with.
  Parameters Explored(Exploit& exploit, std::span<const PopulationMember> members);
  PopulationMember MemberOf(const Trial& trial, const Curve& curve);
  // Whether the parent, or a live clone of it, has these parameters.
  bool IsTrained(const Trial& parent, const Parameters& parameters) const;
  std::int64_t StepOf(const Trial& member);
  void LookAhead(const Study& study);
  void NoteThatWillBeReplaced(const Trial& member, std::int64_t step);
  void LetOthersCome(const Trial& member, std::int64_t step);
  // Whether members are behind the step that may come there.
  bool OthersMayCome(const Study& study, std::int64_t step);
  // Whether more members wait, an interval behind `step`, than slots are free for.
  bool OthersWaitBehind(const Study& study, std::int64_t step);

  Turn& turn_;
  PoolState& pool_;
  PluginsOfStudies& plugins_;
  CurvesOfStudies& curves_;
  Trials& trials_;
  const ClientSlotDesk& client_slots_;
  // Who has told a value or has ended since the last look, and how many values it had told before.
  std::map<TrialId, std::size_t> reported_;
  std::map<TrialId, std::int64_t> awaiting_;  // a winner's checkpoint, since that comparison
  std::set<StudyId> saved_;                   // some of their trials have, since the last look
  std::set<StudyId> unsure_;                  // what has been compared there is not known
  bool is_replacing_ = false;
  // Follows from what is durable, and is looked up for a study when one of its values has come.
  std::set<TrialId> will_be_replaced_;
  std::set<StudyId> changed_;
  bool looked_ = false;                    // at all studies, since the service began
  std::set<StudyId> told_of_plain_;        // of these the record says why nothing is taken over
  std::map<TrialId, std::int64_t> noted_;  // before which step it is on record that it will be
};

}  // namespace espalier
