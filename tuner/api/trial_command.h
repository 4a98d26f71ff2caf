#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tuner/api/tuner.h"

namespace espalier {

// What {seed} in a trial's command stands for: the study's seed plus the trial's number, modulo
// 2^31, which every library takes.
std::int64_t SeedOf(const Trial& trial, const Study& study);

// The parameters that a trial is started with, as one JSON object.
std::string ParametersJsonOf(const Trial& trial, const Study& study);

// What the trial runs or has run, for people and programs: as its agent fills it in, except that
// {trial_dir} and {checkpoint_dir} stay where the folders are not known, as of a node that is gone.
// Empty: it has not started, a client runs it, or its agent could not fill it in either.
std::vector<std::string> CommandOf(const Trial& trial, const Study& study, const View& view);

}  // namespace espalier
