#pragma once

#include <cstdint>

#include "tuner/core/groups/groups.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// Plain programs that are resized by being started again (StudySpec::resize_by_restart). The
// allocator changes what is planned for the trial; once the slots are there its process is asked to
// end, and starts on them from the checkpoint that the program keeps. What that took is measured by
// the values that it tells.

// Whether the trial may be started again for another size now: all its processes run, and have told
// two values since they started, so that it is known how long that takes and how fast they are.
bool MayRestartForSize(const PoolState& pool, const Trial& trial, const Group& group);

// The trial's processes, of a plain program, are asked to save and to end, so that it is started
// again: on the slots that it has, unless others are planned by then. They have `grace_s` after
// SIGTERM. False: some are on their way out, or missing, and nothing is done.
bool AskToSave(PoolState& pool, Groups& groups, const Trial& trial, double grace_s);

// The process has ended because it was asked to: its trial is planned to start on its new slots.
void StartOnNewSlots(Turn& turn, PoolState& pool, TrialId id);

// The trial's program tells a value of this step. The first one that is further than those before
// the restart shows what it cost: the time since the last one, less what so many steps take. That
// is recorded as a resize, and in words along with the steps that were done twice.
void NoteValueOf(Turn& turn, PoolState& pool, TrialId id, std::int64_t step);

}  // namespace espalier
