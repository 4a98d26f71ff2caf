#include "tuner/cli/doors.h"

#include "adapters/nni/service/door.h"
#include "adapters/optuna/storage_service.h"

namespace espalier {

std::vector<MakeDoor> AllDoors() { return {nni::MakeDoor, optuna_storage::MakeDoor}; }

}  // namespace espalier
