#pragma once

#include <memory>

#include "trial_runner/elastic/control_plane.h"

namespace espalier {

// For a program started by hand, without an agent: a group of one from the first Ready on, and
// reports printed to standard output, a line each.
std::unique_ptr<ControlPlane> MakeStandaloneControlPlane(ReplicaId self);

}  // namespace espalier
