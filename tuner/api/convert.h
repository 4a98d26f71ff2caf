#pragma once

#include "tuner.pb.h"
#include "tuner/api/tuner.h"

namespace espalier {

// The mapping from the core to the wire. This and agent_convert.h are the only code that knows
// both.

v1::StudyState ToProto(StudyState state);
v1::TrialState ToProto(TrialState state);
v1::Decision ToProto(const Decision& decision);
v1::Study ToProto(const Study& study, const View& view);

// `with_curves`: with intermediate values, slot spans and resizes.
v1::Trial ToProto(const Trial& trial, const View& view, bool with_curves = true);

// The trial as the client that runs it sees it.
v1::TrialRecord ToRecord(const Trial& trial, const View& view);

// The parameters that the trial runs with, whether the study's sampler or a client drew them.
Parameters ParametersOf(const Trial& trial, const Study& study);

// The study file. Values of environment variables are masked for those who may not see secrets.
std::string DefinitionText(const Study& study, bool shows_secrets);

v1::Pool PoolToProto(const View& view);

// Seconds until the study ends: what is left of its time limit, or the trials still to run at the
// pace of those that have ended (running ones count by the steps they have done), whichever is
// less. 0 for an ended study, negative where neither says anything.
double RemainingSeconds(const Study& study, const TunerState& state, Time now);

}  // namespace espalier
