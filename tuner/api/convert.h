#pragma once

#include "tuner.pb.h"
#include "tuner/api/tuner.h"

namespace espalier {

// Core to wire. With agent_convert.h the only code that knows both.

v1::StudyState ToProto(StudyState state);
v1::TrialState ToProto(TrialState state);
v1::Decision ToProto(const Decision& decision);
v1::Study ToProto(const Study& study, const View& view);

// Without curves: no intermediate values, slot spans and resizes.
v1::Trial ToProto(const Trial& trial, const View& view, bool with_curves = true);

// As the client sees it that runs it.
v1::TrialRecord ToRecord(const Trial& trial, const View& view);

// What the trial runs with, whoever drew it.
Parameters ParametersOf(const Trial& trial, const Study& study);

v1::Pool PoolToProto(const View& view);

// Seconds until the study ends: what is left of its time limit, or the trials still to run at the
// pace of those that have ended (running ones count by the steps they have done), whichever is
// less. 0 for an ended study, negative where neither says anything.
double RemainingSeconds(const Study& study, const TunerState& state, Time now);

}  // namespace espalier
