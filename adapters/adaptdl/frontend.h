#pragma once

#include <memory>

#include "tuner/server/engines/kubernetes_api.h"
#include "tuner/server/frontend.h"

namespace espalier::adaptdl {

// AdaptDL's jobs of a namespace, as its users make them with kubectl: docs/clusters.md. It answers
// no calls; a thread of its own compares (jobs.h).
std::unique_ptr<Frontend> MakeFrontend(ApiServer server);

}  // namespace espalier::adaptdl
