#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner.pb.h"

namespace espalier {

// So much of a file is looked at in one piece: longer lines and records are passed over.
inline constexpr std::size_t kMaxRecord_bytes = std::size_t{256} << 10;

// Values of the study's metric in files that a program writes, and what is there instead of them.
// Does no I/O.
class ValueRecords {
 public:
  explicit ValueRecords(const v1::FileMetric& metric)
      : metric_(metric), figures_(metric.figures().begin(), metric.figures().end()) {}

  // `bytes` are a file's from some place on, kMaxRecord_bytes at the most, and `left` how many
  // there are from there to its end. Returns how many it is through with, which may be more than
  // `bytes`; 0: it waits for more. `ends`: there will not be more.
  std::size_t TakeLines(std::string_view bytes, bool ends, std::vector<v1::Report>& reports);
  std::size_t TakeEvents(std::string_view bytes, std::size_t left,
                         std::vector<v1::Report>& reports);

  bool found() const { return found_; }
  std::int64_t counted() const { return counted_; }
  // What a predecessor had found.
  void GoOn(bool found, std::int64_t counted);
  // For people: what the records have, and why none has a value. Empty: there was none.
  std::string WhatElse() const;

 private:
  void TakeLine(std::string_view line, std::vector<v1::Report>& reports);
  void TakeEvent(std::string_view bytes, std::vector<v1::Report>& reports);
  v1::Report& Report(std::optional<std::int64_t> step, double value,
                     std::vector<v1::Report>& reports);
  void NoteName(const std::string& name);

  const v1::FileMetric metric_;
  const std::vector<std::string> figures_;  // keys of those beside the value
  bool found_ = false;
  std::int64_t counted_ = 0;        // values without a step
  std::vector<std::string> names_;  // keys or tags that were seen, without a value
  std::string trouble_;             // the first that is no record
  std::size_t passed_over_ = 0;     // records that were too long
};

}  // namespace espalier
