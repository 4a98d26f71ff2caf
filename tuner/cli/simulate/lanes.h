#pragma once

#include <string>
#include <vector>

#include "tuner/cli/views/simulation_text.h"
#include "tuner/simulator/recorded_load.h"
#include "tuner/simulator/study_simulator.h"

namespace espalier {

// A simulated study as pages draw it: its figures, and who held which slot when, in the form of
// GET /api/view/lanes (docs/http.md) with seconds from its start for times. Spans and marks that a
// pixel could not tell apart are one. Trials of a recorded study (`recorded` is not null) have the
// ids and numbers that they have there. Nodes have `slots_per_node`, or as many as were held of
// them where that is 0. JSON.
std::string LaneRunJson(const SimulationRun& run, const StudySpec& spec,
                        const StudySimulation& simulation, const RecordedLoad* recorded,
                        int slots_per_node);

// A run of which the figures alone are known, in the same form: without a pruner, and lanes null.
std::string FigureRunJson(const SimulationRun& run);

// All runs, each as above, and the figures of the study itself.
std::string LanesJson(const std::vector<std::string>& runs, const RecordedFigures& recorded);

}  // namespace espalier
