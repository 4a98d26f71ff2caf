#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tuner.pb.h"

namespace espalier {

inline constexpr std::size_t kMinTableWidth = 40;
inline constexpr double kResizeShown_s = 3;  // how long "1→2" stands in place of "2"

enum class LineStyle { kPlain, kTitle, kBest, kRunning, kDim, kBad };

// One line of the live table: at most `width` columns, styled as a whole so that the text itself
// can be compared.
struct TableLine {
  std::string text;
  LineStyle style = LineStyle::kPlain;
};

struct TableOptions {
  std::size_t width = 100;
  std::size_t height = 30;  // lines at most
  double now = 0;           // seconds since the epoch
};

// The state of a study as a table: a head (progress, slots, best so far) and the trials, running
// ones first and then the best. Rows that do not fit are counted. Pure.
std::vector<TableLine> RenderTable(const v1::StudyDetails& details, const TableOptions& options);

// "[####----] 12/24 trials": also used by the plain lines.
std::string TrialCounts(const v1::Study& study);

// "best (highest) accuracy 0.9012, trial 7: lr=0.01 ..." or "best (highest) accuracy: no value
// yet".
std::string BestSoFar(const v1::StudyDetails& details);

}  // namespace espalier
