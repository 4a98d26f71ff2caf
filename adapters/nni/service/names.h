#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tuner/core/state/study.h"

namespace espalier::nni {

// An experiment is the study "nni-<experiment>", and a trial has its NNI id as an attribute. All
// that is kept of them beside the study's own record are system attributes of these names.
inline constexpr std::size_t kMaxId = 64;  // bytes
inline constexpr std::int64_t kMaxSequence = 1'000'000'000;

// System attributes of the study.
inline constexpr char kDefinition[] = "nni:definition";  // the body that opened it, keys in order
inline constexpr char kChannelKey[] = "nni:channel_key";
// System attributes of a trial.
inline constexpr char kTrial[] = "nni:trial";          // its id
inline constexpr char kSequence[] = "nni:sequence";    // NNI's number of it
inline constexpr char kParameter[] = "nni:parameter";  // NNI's text, or the newest one of several
// Followed by type and sequence, or FINAL: {"sequence", "parameter_id", "value"}.
inline constexpr char kMetric[] = "nni:metric:";
inline constexpr char kPeriodical[] = "PERIODICAL";
inline constexpr char kFinal[] = "FINAL";

// 1 to kMaxId letters, digits, '_' and '-'. `what` is what the message calls it.
absl::Status CheckId(std::string_view what, std::string_view id);

std::string StudyName(std::string_view experiment);

// The experiment that the study is; none: it is another study.
std::optional<std::string> ExperimentOf(const StudySpec& spec);

// What follows reads what a client may have written, who need not have been NNI's.

// A system attribute as it is; null: there is none.
const std::string* Attribute(const Attributes& attributes, const char* name);

// The text of an attribute that is a JSON string. Empty: there is none.
std::string TextAttribute(const Attributes& attributes, const char* name);

// The number of an attribute that is a JSON integer. None: there is none.
std::optional<std::int64_t> IntegerAttribute(const Attributes& attributes, const char* name);

}  // namespace espalier::nni
