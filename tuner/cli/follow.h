#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "tuner/cli/client.h"
#include "tuner/cli/display.h"
#include "tuner/cli/exit_codes.h"
#include "tuner/cli/interrupts.h"
#include "tuner/cli/options/service_options.h"

namespace espalier {

class CliCommand;

inline constexpr double kEndPoll_s = 0.02;     // how soon a study's end is noticed
inline constexpr double kDisplayPoll_s = 0.2;  // how often the display is renewed
inline constexpr double kAwayPoll_s = 0.5;     // how soon a service that was away is noticed

// Shows a study until it is not RUNNING any more, or until an interrupt. Returns the study, without
// curves, as it was last seen. If the service goes away meanwhile, as it does for a restart, it is
// waited for: UNAVAILABLE after `away_limit_s`, or at an interrupt.
absl::StatusOr<v1::StudyDetails> FollowStudy(Client& client, const std::string& name,
                                             StudyDisplay& display, const Interrupts& interrupts,
                                             double away_limit_s);

struct WatchOptions {
  ServiceArguments service{};   // by which the client was made
  double away_limit_s = 300;    // how long a service that has gone away is waited for
  bool quiet = false;           // only the result is shown
  bool from_the_start = false;  // else what has happened before is summed up in a line

  void AddTo(CliCommand& command);
};

// Shows the study on the terminal to its end, then the result, as `tuner watch` does. Ctrl-C leaves
// the study alone.
absl::StatusOr<ExitCode> WatchStudy(Client& client, const std::string& name,
                                    const WatchOptions& options);

// Waits, showing the study, until its trials hold no slot, at most this long.
absl::Status AwaitSlotsFree(Client& client, const std::string& name, StudyDisplay& display,
                            const Interrupts& interrupts, double limit_s);

// The study without curves, as displays want it.
absl::StatusOr<v1::StudyDetails> Glance(Client& client, const std::string& name);

// The end of a study for people: state, counts, best trial with its parameters.
std::string ResultText(const v1::StudyDetails& details);

// The exit code that a study's state gives to a script that waited for it.
ExitCode ExitCodeOf(v1::StudyState state);

}  // namespace espalier
