#pragma once

#include <memory>
#include <string>

#include "tuner.pb.h"

namespace espalier {

// Where a person follows a study.
class StudyDisplay {
 public:
  virtual ~StudyDisplay() = default;
  // What happened up to here is not told.
  virtual void StartAfter(const v1::StudyDetails& details) = 0;
  // A newer look at the study, without curves.
  virtual void Show(const v1::StudyDetails& details) = 0;
  // A line that stays.
  virtual void Say(const std::string& line) = 0;
  // Shows nothing more after this; leaves the terminal in order.
  virtual void Finish() = 0;
};

// On a terminal a table that is redrawn in place, else one line an event; with quiet nothing.
// To stdout.
std::unique_ptr<StudyDisplay> MakeDisplay(bool quiet);

// Columns of the terminal at stdout; `otherwise` if it is none.
std::size_t TerminalWidth(std::size_t otherwise);

}  // namespace espalier
