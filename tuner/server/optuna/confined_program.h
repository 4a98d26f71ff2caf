#pragma once

#include <sys/types.h>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"

namespace espalier {

inline constexpr std::size_t kMostAnswerBytes = std::size_t{16} << 20;

// A program that answers each line on its standard input with a line on its standard output. It has
// a process group and an environment of its own, and is killed with all of its group. One thread at
// a time; the one that starts it must live as long, since the program may ask to end with it.
class ConfinedProgram {
 public:
  // `command` is looked for in PATH, and run without a shell. NotFound: it cannot be started.
  static absl::StatusOr<std::unique_ptr<ConfinedProgram>> Start(
      std::vector<std::string> command, std::vector<std::string> environment);
  ~ConfinedProgram();
  ConfinedProgram(const ConfinedProgram&) = delete;
  ConfinedProgram& operator=(const ConfinedProgram&) = delete;

  // The text, which is whole lines, and the line that is said to it, without its end. Cancelled:
  // `stop` was asked for. DeadlineExceeded: it has said none within `limit_s`, in which it has
  // hardly used a processor; one that works may take longer, as its own bounds say.
  // ResourceExhausted: its line is too long, or it has used up its processor time. Aborted: it has
  // ended otherwise; the error says how, and its last words. After an error it is of no more use.
  absl::StatusOr<std::string> Exchange(std::string_view text, double limit_s,
                                       const std::stop_token& stop);

 private:
  ConfinedProgram(pid_t pid, FileDescriptor lines, FileDescriptor errors)
      : pid_(pid), lines_(std::move(lines)), errors_(std::move(errors)) {}

  double ProcessorSeconds() const;
  // False: there is nothing to read now.
  bool ReadErrors();
  absl::Status HowItEnded();

  pid_t pid_;  // 0: it has been waited for
  FileDescriptor lines_;
  FileDescriptor errors_;
  std::string read_;        // beyond the last line
  std::string last_words_;  // the end of what it has written to standard error
};

}  // namespace espalier
