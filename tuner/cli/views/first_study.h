#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace espalier {

// With whom `tuner init` speaks.
struct Conversation {
  // The answer to a question, without blanks around it; where it is empty, what was suggested.
  // OUT_OF_RANGE: nobody answers any more.
  std::function<absl::StatusOr<std::string>(const std::string& question,
                                            const std::string& suggested)>
      ask;
  std::function<void(const std::string& line)> say;
};

// A study file, in JSON, by the answers to a few questions: the command, its parameters with their
// values and places in the command, the metric and how it is found, the number of trials. What is
// no answer is said, and asked again. Fails only as `ask` does.
absl::StatusOr<std::string> AskForStudy(const Conversation& with);

// The pattern of "from_output" for a line in which VALUE stands for the value: what comes before
// it and behind it is matched as it is, but for the number of blanks, and for other numbers, which
// may be any. Empty: there is no VALUE in the line, or several.
std::string PatternOfLine(const std::string& line);

}  // namespace espalier
