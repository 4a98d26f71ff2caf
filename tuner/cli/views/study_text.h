#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tuner.pb.h"

namespace espalier {

// How the CLI, its table and its report name what a study's record holds. Pure.

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

// The metrics of a study of several, or the one of another: "loss, latency_ms".
std::string MetricNames(const v1::Study& study);

// The trial's newest value, or values, for people: "0.12, 3.4". Empty: it has none.
std::string ValuesText(const v1::Trial& trial);

// Of a study with several directions: the complete trials that no other one dominates, by
// number. Those that break a constraint are none of them.
std::vector<const v1::Trial*> ParetoFront(const v1::StudyDetails& details);

// Why a study has no best trial, or no front: that a complete trial has told constraints and breaks
// one, or `otherwise`.
std::string_view WhyNoneIsBest(const v1::StudyDetails& details, std::string_view otherwise);

// The study's constraints, and how many trials break them: "latency_ms <= 20: 3 trials break it".
// Empty: it has none.
std::string ConstraintsText(const v1::StudyDetails& details);

// True if a is the better value for the study. NaN is worse than every number.
bool BetterFor(const v1::Study& study, double a, double b);

// The study's best trial first, then the others by value: complete ones, those that are not, those
// that break a constraint, those whose value is not finite; last, by number, those without one.
std::vector<const v1::Trial*> BestFirst(const v1::StudyDetails& details);

}  // namespace espalier
