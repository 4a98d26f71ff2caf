#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tuner.pb.h"

namespace espalier {

// The record of a study as one HTML page that needs nothing else: inline style and SVG, no script,
// readable in light and dark. Every figure in it follows from `details`; spans that are still open
// are drawn to `now` (seconds since the epoch). `target` is the value that batch sizes and scaling
// rules are compared by, instead of the study's own. Pure.
std::string ReportPage(const v1::StudyDetails& details, double now,
                       std::optional<double> target = std::nullopt);

// Whether the text, which may be the beginning of a page, is a report on the study of this name.
bool IsReportOn(const std::string& study, std::string_view page);

}  // namespace espalier
