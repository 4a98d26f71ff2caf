#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tuner.pb.h"

namespace espalier {

// What a page tells beside the record.
struct ReportOptions {
  // The value that batch sizes and scaling rules are compared by, instead of the study's own.
  std::optional<double> target{};
  // JSON: what became of a study under several policies (simulate/lanes.h); empty: nothing.
  std::string comparison{};
};

// The record of a study as one HTML page that needs nothing else: the page of the service with the
// record in it, and tables for readers without scripts. Every figure in it follows from `details`;
// spans that are still open are drawn to `now` (seconds since the epoch). In a program without the
// pages it is the tables alone. INVALID_ARGUMENT for what cannot be one study's record. Pure.
absl::StatusOr<std::string> ReportPage(const v1::StudyDetails& details, double now,
                                       const ReportOptions& options = {});

// Whether the text, which may be the beginning of a page, is a report on the study of this name.
bool IsReportOn(const std::string& study, std::string_view page);

}  // namespace espalier
