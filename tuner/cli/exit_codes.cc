#include "tuner/cli/exit_codes.h"

namespace espalier {

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return ExitCode::kOk;
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return ExitCode::kUnreachable;
  }
  if (absl::IsNotFound(status)) return ExitCode::kNotFound;
  if (absl::IsInvalidArgument(status) || absl::IsAlreadyExists(status) ||
      absl::IsFailedPrecondition(status) || absl::IsOutOfRange(status) ||
      absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status)) {
    return ExitCode::kBadInput;
  }
  return ExitCode::kFailed;
}

}  // namespace espalier
