#pragma once

#include <map>

#include "allocator/pool/pool.h"
#include "allocator/pool/speedup.h"

namespace espalier {

// The exponent of the power mean over studies of goodput per share. 1: the sum, whichever study
// contributes it; 0: proportional fairness; -1: the harmonic mean; far below: the study that has
// least comes first.
inline constexpr double kStudyFairness = -20;

// Configurations of a study that could still be started, beyond the jobs of a pool.
struct StudyDemand {
  int configurations = 0;
  int slots_each = 1;
};

// What one study may claim beside the others.
struct StudyPart {
  int slots = 0;
  double goodput = 0;  // what these would give: speedups over one slot, summed over its trials
  // The weight of its trials beside those of other studies, such that an allocation of the whole
  // pool by weighted speedups comes near to `slots` for each study.
  double weight = 1;
};

// Divides the pool's slots (draining nodes aside) among its studies, one by one to the study for
// which it adds most to the power mean. Within a study the minima of its trials come first, then
// further configurations, then growth by promise. Where studies take turns (Pool::owed), whole
// trials go one by one to the study that has had least of its share, a trial that would not fit
// behind those of others before them. GPU types and places are left to the policy: this
// says how much, not where. Pure; takes milliseconds for thousands of slots, and is only asked
// where studies compete.
std::map<StudyId, StudyPart> DivideAmongStudies(const Pool& pool, SpeedupCache& cache,
                                                const std::map<StudyId, StudyDemand>& demand = {},
                                                double fairness = kStudyFairness);

// Takes waiting trials out of a pool in which studies take turns, as far as they are beyond their
// study's part: no policy starts them in slots that are kept for another's.
void WithholdBeyondParts(Pool& pool, const std::map<StudyId, StudyPart>& parts);

// Whether the pool has trials of more than one study.
bool StudiesCompete(const Pool& pool);

}  // namespace espalier
