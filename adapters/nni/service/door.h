#pragma once

#include <memory>

#include "tuner/server/door.h"

namespace espalier::nni {

// NNI's experiments and the channel of their trials, over HTTP. docs/nni_protocol.md describes the
// routes.
std::unique_ptr<Door> MakeDoor();

}  // namespace espalier::nni
