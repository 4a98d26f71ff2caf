#pragma once

#include <memory>

#include "tuner/server/frontend.h"

namespace espalier::optuna_storage {

// Optuna's storage service (optuna.StorageService) on the tuner's own studies and trials: what one
// frontend writes the other shows. All 19 calls are answered without a thread that waits: writes
// when they are durable, reads from memory between two commits.
//
// Codes are those of Optuna's own server: NOT_FOUND for unknown ids and names, ALREADY_EXISTS for a
// study's name, FAILED_PRECONDITION for a trial that has ended, INVALID_ARGUMENT for a distribution
// that does not fit, UNKNOWN for texts that cannot be read. Trials of the pool can be read and take
// attributes; what else would change them is PERMISSION_DENIED.
std::unique_ptr<Frontend> MakeFrontend();

}  // namespace espalier::optuna_storage
