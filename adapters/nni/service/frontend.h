#pragma once

#include <memory>

#include "tuner/server/frontend.h"

namespace espalier::nni {

// NNI's experiments and the channel of their trials, over HTTP. docs/nni_protocol.md describes the
// routes.
std::unique_ptr<Frontend> MakeFrontend();

}  // namespace espalier::nni
