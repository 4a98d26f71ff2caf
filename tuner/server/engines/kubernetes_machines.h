#pragma once

#include <memory>
#include <string>

#include "tuner/server/engines/kubernetes_api.h"
#include "tuner/server/engines/machine_provider.h"

namespace espalier {

struct PoolOfPods {
  std::string pool;
  std::string made_from;  // PodTemplate
  std::string secret;     // that its pods find their files in
  double grace_s = 0;     // between SIGTERM and the end
  double overdue_s = 0;   // after which a pod that was deleted and is still there is removed
};

// Machines that are pods of Kubernetes, of one agent each, known by their names: the API server
// gives out each once at a time. It lists those of the pool, and removes those that have ended.
std::unique_ptr<MachineProvider> KubernetesMachines(ApiServer server, PoolOfPods pods,
                                                    EngineCapabilities capabilities);

}  // namespace espalier
