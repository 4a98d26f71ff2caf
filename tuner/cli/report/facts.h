#pragma once

#include <string>

#include "tuner.pb.h"
#include "tuner/cli/report/sweep.h"

namespace espalier::report {

// What a record tells beside what the service answers, as JSON of
// tuner/web/page/record/contract.ts. Pure.

// How the pool's slots were used, how far promise could be trusted, and the sweep.
std::string FactsJson(const v1::StudyDetails& details, const Sweep& sweep, double now);

}  // namespace espalier::report
