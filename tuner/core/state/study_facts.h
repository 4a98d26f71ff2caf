#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/core/state/change.h"

// What follows from the record of a study.
namespace espalier {

inline constexpr double kHour_s = 3600;

// Seconds the study has run, without the time it was stopped.
double ElapsedSeconds(const Study& study, Time now);
// How many slots the study's trials have held, times how long; and what that cost: at the
// study's price of a slot, where it has one, else at the nodes' prices, as far as these are told.
double SlotSeconds(const TunerState& state, const Study& study, Time now);
double SpentOn(const TunerState& state, const Study& study, Time now);

// Number of the study's best trial so far (completed ones first; pruned ones count by their last
// value only when nothing completed), or nullopt. One whose value is not finite is never the best,
// nor is one that breaks a constraint, as far as it has told.
std::optional<std::int64_t> BestTrial(const TunerState& state, const Study& study);

// Why members of a population of plain programs cannot take over from one another.
inline constexpr char kSavesUnasked[] =
    "the program is not elastic, and neither asks whether to save (trial.should_save, tuner tell "
    "--should-save) nor has a study with \"resize\": \"restart\"";
// Whether the trial's program has told two values since it was started, and not asked in between.
bool GoesUnasked(const Trial& trial);

// The system's attribute of a trial whose program has come to its end and had not asked for the
// parameter.
std::string UnreadAttribute(const std::string& parameter);

// The value by which a trial is ranked: its final value if it has one, else its best intermediate
// one.
std::optional<double> BestValue(const Trial& trial, Direction direction);

// Whether the value ends the study: it is its target, or better, of a trial that keeps to its
// constraints, as far as it has told.
bool ReachesTarget(const StudySpec& spec, const Trial& trial, double value);

// Whether the pool ran the trial to its end, and there is no number as its value: its study has no
// metric, or the client that enqueued it knows what it was for.
bool CompleteWithoutValue(const Study& study, const Trial& trial);

// What the trial has told of the step; null: nothing.
const IntermediateValue* ValueAt(const Trial& trial, std::int64_t step);

// What has become of the trial's other metrics (Trial::other_curves, other_values), by the figures
// that it told with the value of `step`, or with each of its values.
void TakeOtherMetrics(const StudySpec& spec, std::int64_t step, Trial& trial);
void TakeOtherMetrics(const StudySpec& spec, Trial& trial);

// The figures beside the value that the study needs of its trials, each once: its other metrics,
// and those that constraints are on.
std::vector<std::string> FiguresNeeded(const StudySpec& spec);

// What has become of Trial::constraints in a study that has some, by the value of `step` and what
// was told with it, or by all values. Anything else leaves them as they are.
void TakeConstraints(const StudySpec& spec, std::int64_t step, Trial& trial);
void TakeConstraints(const StudySpec& spec, Trial& trial);

// The first figure that the study bounds and the trial has not told; empty: it has told all.
std::string UntoldFigure(const StudySpec& spec, const Trial& trial);

// Whether the trial breaks a constraint by what it has told. One that has not ended may still tell
// what it has not, and breaks none by that.
bool Breaks(const StudySpec& spec, const Trial& trial);

// The same; nullopt: it has none, or has not told yet what all of them are on.
std::optional<bool> BreaksIfTold(const StudySpec& spec, const Trial& trial);

// The constraints of the study that the trial breaks with the value at which it ends, and its
// figures: "latency_ms <= 20 (it is 31.5)". Empty: none.
std::string BrokenConstraints(const StudySpec& spec, const Trial& trial,
                              std::optional<double> value);

// The first metric of the study that the trial has not told of; empty: it has told of all.
std::string UntoldMetric(const StudySpec& spec, const Trial& trial);

// Whether trials of the study have told values or come to their end without ever having been in a
// group of replicas: then its program cannot be resized.
bool HasProvenInelastic(const TunerState& state, const Study& study);

// Why the trial starts no more replicas than it has, for people: "does not grow beyond 1 replica:
// ...". Empty: nothing keeps it from that.
std::string WhyNotGrowing(const Trial& trial);

}  // namespace espalier
