#include "trial_runner/collectives/cuda/staged_operation.h"

namespace espalier {

void StartOnHost(Collectives& host, const StagedOperation& operation) {
  switch (operation.kind) {
    case StagedOperation::Kind::kAllReduceSum:
      return host.StartAllReduceSum(operation.buffer);
    case StagedOperation::Kind::kBroadcast:
      return host.StartBroadcast(operation.buffer, operation.peer);
    case StagedOperation::Kind::kSend:
      return host.StartSend(operation.buffer, operation.peer);
    case StagedOperation::Kind::kReceive:
      return host.StartReceive(operation.buffer, operation.peer);
  }
}

}  // namespace espalier
