#pragma once

#include <functional>
#include <string>

#include "tuner/base/status.h"
#include "tuner/cli/client.h"
#include "tuner/cli/display.h"
#include "tuner/cli/exit_codes.h"
#include "tuner/cli/interrupts.h"

namespace espalier {

inline constexpr double kEndPoll_s = 0.02;     // how soon a study's end is noticed
inline constexpr double kDisplayPoll_s = 0.2;  // how often the display is renewed
// Polling may cost the service this share of its time at most; a large study is looked at less
// often.
inline constexpr double kPollShare = 0.05;

// Shows a study until it is not RUNNING any more, or until an interrupt. Returns the study as it
// was last seen.
absl::StatusOr<v1::Study> FollowStudy(Client& client, const std::string& name,
                                      StudyDisplay& display, const Interrupts& interrupts);

// Shows the study on the terminal to its end, then the result, as `tuner watch` does. Ctrl-C leaves
// the study alone. Without `from_the_start`, what has happened before is summed up in a line.
absl::StatusOr<ExitCode> WatchStudy(Client& client, const std::string& name, bool quiet,
                                    bool from_the_start);

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
