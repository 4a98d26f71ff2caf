#include "tuner/cli/frontends.h"

#include "adapters/nni/service/frontend.h"
#include "adapters/optuna/storage_service.h"

namespace espalier {

std::vector<MakeFrontend> AllFrontends() {
  return {nni::MakeFrontend, optuna_storage::MakeFrontend};
}

}  // namespace espalier
