#include "tuner/cli/options/timeout_options.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "tuner/cli/options/command.h"
#include "tuner/study_file/timeout_keys.h"

namespace espalier {

void AddTimeoutsTo(CliCommand& command, TrialTimeouts& timeouts) {
  for (const TimeoutKey& timeout : kTimeoutKeys) {
    command
        .AddOption(timeout.option, timeouts.*timeout.seconds,
                   absl::StrCat(timeout.help, "; a study's own ", timeout.key, " takes precedence"))
        .ShowDefault();
  }
}

absl::Status CheckTimeouts(const TrialTimeouts& timeouts) {
  for (const TimeoutKey& timeout : kTimeoutKeys) {
    const double seconds = timeouts.*timeout.seconds;
    if (seconds >= kLeastTimeout_s && std::isfinite(seconds)) continue;
    return absl::InvalidArgumentError(absl::StrCat(timeout.option, " ", seconds, ": must be ",
                                                   kLeastTimeout_s, " or more seconds"));
  }
  return absl::OkStatus();
}

}  // namespace espalier
