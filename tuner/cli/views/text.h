#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tuner.pb.h"
#include "tuner/base/status.h"

namespace espalier {

// How the CLI, its table and its report write numbers, times and trials. Pure.

std::string FormatValue(double value);       // four significant digits; nan, inf, -inf
std::string FormatExactly(double value);     // the fewest digits that give the value back
std::string FormatDuration(double seconds);  // 0.4s, 12s, 1m05s, 2h03m, 3d04h
std::string FormatClock(double at);          // local time of day, 14:03:59

// Without the prefix of the wire: RUNNING, COMPLETE.
std::string StateName(v1::TrialState state);
std::string StateName(v1::StudyState state);
bool HasEnded(v1::TrialState state);
bool HasEnded(v1::StudyState state);  // STOPPED has not: it can be resumed

// A parameter's value for people, from its JSON; the JSON itself if it is not a plain value.
std::string DisplayParameter(const v1::Parameter& parameter);
// With all digits: strings without their JSON quotes, everything else as it stands.
std::string ExactParameter(const v1::Parameter& parameter);
// lr=0.01 batch_size=64
std::string DisplayParameters(const v1::Trial& trial);
const v1::Parameter* FindParameter(const v1::Trial& trial, std::string_view name);

const v1::Trial* FindTrial(const v1::StudyDetails& details, std::int64_t number);
// Finds a trial that a user names. NOT_FOUND: there is none of that number.
absl::StatusOr<v1::Trial> NamedTrial(const v1::StudyDetails& details, std::int64_t number);

// What the study calls its metric; "value" where it has no name for it.
std::string MetricName(const v1::Study& study);

// "lowest" or "highest": which value is the best for the study.
std::string_view BestIs(const v1::Study& study);

// True if a is the better value for the study. NaN is worse than every number.
bool BetterFor(const v1::Study& study, double a, double b);

// Trials with the best value first; those without one last, by number.
std::vector<const v1::Trial*> BestFirst(const v1::StudyDetails& details);

// Columns on a terminal, of UTF-8: East Asian characters and emoji have two.
std::size_t DisplayWidth(std::string_view text);
// Exactly `width` columns: padded with blanks or cut with an ellipsis. Control characters, which
// could come from a program's output or a parameter, become blanks.
std::string FitLeft(std::string_view text, std::size_t width);
std::string FitRight(std::string_view text, std::size_t width);
// At most `width` columns: cut in the same way, and not padded.
std::string Cut(std::string_view text, std::size_t width);

// Rows as left-aligned columns, two blanks between; the first row is the heading.
std::vector<std::string> Columns(const std::vector<std::vector<std::string>>& rows);

// The words of a text in lines of at most `width` columns; a longer word has a line of its own.
std::vector<std::string> Wrapped(std::string_view text, std::size_t width);

// "1 trial", "2 trials".
std::string Count(std::int64_t n, std::string_view singular);

}  // namespace espalier
