#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/patterns/output_pattern.h"
#include "handover.pb.h"
#include "tuner.pb.h"

namespace espalier {

// Of a longer line only the beginning is looked at.
inline constexpr std::size_t kMaxOutputLine_bytes = std::size_t{64} << 10;

// Finds values of the study's metric in what a program prints, line by line: '\r' ends one too, as
// of a progress bar, and colours are no part of it. Does no I/O.
class MetricReader {
 public:
  static absl::StatusOr<MetricReader> Make(const v1::OutputMetric& metric);

  // What was printed next, in any pieces; the values of the lines that are complete now. A value's
  // step is the one in its line, or the last that the step's pattern has found, or else the number
  // of values so far.
  std::vector<v1::Report> Take(std::string_view printed);
  // The output has ended, and what is left of it is a line.
  std::vector<v1::Report> End();

  bool found() const { return found_; }
  // Why there is no value, for people, with the lines that are nearest to one.
  std::string WhyNone() const;

  // For the agent's successor, which need not know those lines.
  void HandOver(v1::HandedOutput& handed) const;
  void TakeOver(const v1::HandedOutput& handed);

 private:
  // How near it is to having a value, and the line.
  using NearLine = std::pair<int, std::string>;

  MetricReader(const v1::OutputMetric& metric, OutputPattern pattern);
  void Add(std::string_view part);
  void EndLine(std::vector<v1::Report>& reports);
  void NoteNear(std::string_view line, const std::string& no_number);

  std::string text_;  // of the pattern
  OutputPattern pattern_;
  std::vector<std::string> words_;  // of the pattern, in lower case
  std::string line_;                // as far as it is printed
  std::int64_t counted_ = 0;
  std::optional<std::int64_t> step_;
  bool found_ = false;
  std::vector<NearLine> near_;  // the nearest first
};

}  // namespace espalier
