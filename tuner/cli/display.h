#pragma once

#include <memory>
#include <string>

namespace espalier {

namespace v1 {
class StudyDetails;
}  // namespace v1

// Shows a study to a person who follows it.
class StudyDisplay {
 public:
  virtual ~StudyDisplay() = default;
  // What happened up to this record is not shown.
  virtual void StartAfter(const v1::StudyDetails& details) = 0;
  // Shows a newer record of the study, without curves.
  virtual void Show(const v1::StudyDetails& details) = 0;
  // Prints a line that stays.
  virtual void Say(const std::string& line) = 0;
  // Shows nothing more after this; leaves the terminal in order.
  virtual void Finish() = 0;
};

// On a terminal a table that is redrawn in place, else one line for each event; with `quiet`
// nothing. Writes to stdout.
std::unique_ptr<StudyDisplay> MakeDisplay(bool quiet);

// Undoes what a live table does to the terminal, where the process ends without Finish. May be
// called from any thread.
void RestoreTerminal();

// Columns of the terminal at stdout; `otherwise` if stdout is no terminal.
std::size_t TerminalWidth(std::size_t otherwise);

}  // namespace espalier
