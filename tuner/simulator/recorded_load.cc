#include "tuner/simulator/recorded_load.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

namespace {

constexpr double kLeastStep_s = 1e-3;

struct RecordedTrial {
  RecordedLoad::Origin origin;
  Parameters parameters;
  std::vector<IntermediateValue> values;
  std::map<std::int64_t, std::map<std::string, double>> figures;  // told at a step
  std::map<std::string, double> last_figures;                     // all that its study needs
  bool complete = false;
  std::int64_t batch = 1;
  std::map<int, double> step_s;  // by slots: mean seconds of a reported step
};

// The slots held over the whole of a span of time, or nothing if they changed in it.
std::optional<int> SlotsThroughout(const Trial& trial, Time from, Time to) {
  for (const SlotSpan& span : trial.spans) {
    if (span.from <= from && (span.to == Time{} || span.to >= to)) {
      return static_cast<int>(span.slots.size());
    }
  }
  return std::nullopt;
}

double PausedSeconds(const Trial& trial, Time from, Time to) {
  double sum = 0;
  for (const Resize& resize : trial.resizes) {
    if (resize.at > from && resize.at <= to) sum += resize.pause_s;
  }
  return sum;
}

// Slot-seconds of the trial by its wall-clock time, for those that never had a quiet step.
std::map<int, double> MeanOverAll(const Trial& trial) {
  double held_s = 0;
  double slot_s = 0;
  const Time last = trial.values.back().at;
  for (const SlotSpan& span : trial.spans) {
    const Time to = span.to == Time{} ? last : std::min(span.to, last);
    const double span_s = std::max(0.0, SecondsBetween(span.from, to));
    held_s += span_s;
    slot_s += span_s * static_cast<double>(span.slots.size());
  }
  if (held_s <= 0) return {{1, 1.0}};
  const int slots = std::max(1, static_cast<int>(std::lround(slot_s / held_s)));
  return {{slots, std::max(kLeastStep_s, held_s / static_cast<double>(trial.values.size()))}};
}

std::map<int, double> StepSeconds(const Trial& trial) {
  std::map<int, std::pair<double, int>> sums;
  Time from = trial.started;
  for (const IntermediateValue& value : trial.values) {
    const std::optional<int> slots = SlotsThroughout(trial, from, value.at);
    const double step_s = SecondsBetween(from, value.at) - PausedSeconds(trial, from, value.at);
    // The first one contains the start of the program.
    if (slots && *slots > 0 && step_s > 0 && from != trial.started) {
      sums[*slots].first += step_s;
      ++sums[*slots].second;
    }
    from = value.at;
  }
  if (sums.empty()) return MeanOverAll(trial);
  std::map<int, double> means;
  for (const auto& [slots, sum] : sums) {
    means[slots] = std::max(kLeastStep_s, sum.first / sum.second);
  }
  return means;
}

// How time falls with slots over all trials that trained on several numbers: the slope of log
// seconds over log slots, each trial about its own mean.
double FitExponent(const std::vector<RecordedTrial>& trials) {
  double covariance = 0;
  double variance = 0;
  for (const RecordedTrial& trial : trials) {
    double mean_slots = 0;
    double mean_time = 0;
    const auto count = static_cast<double>(trial.step_s.size());
    for (const auto& [slots, step_s] : trial.step_s) {
      mean_slots += std::log(slots) / count;
      mean_time += std::log(step_s) / count;
    }
    for (const auto& [slots, step_s] : trial.step_s) {
      const double off = std::log(slots) - mean_slots;
      covariance += off * (std::log(step_s) - mean_time);
      variance += off * off;
    }
  }
  return variance > 0 ? std::clamp(-covariance / variance, 0.0, 1.0) : 1.0;
}

class RecordedTruth : public TrialTruth {
 public:
  RecordedTruth(const RecordedTrial& trial, double exponent, std::int64_t longest)
      : trial_(trial), exponent_(exponent), longest_(longest) {}

  BatchBounds bounds() const override {
    return {.initial = trial_.batch,
            .max_global = trial_.batch,
            .min_atomic = 1,
            .max_atomic = trial_.batch,
            .accumulation = true};
  }
  std::int64_t steps() const override {
    const auto recorded = static_cast<std::int64_t>(trial_.values.size());
    return trial_.complete ? recorded : std::max(recorded, longest_);
  }
  std::int64_t StepNumber(std::int64_t nth) const override {
    const auto recorded = static_cast<std::int64_t>(trial_.values.size());
    const std::int64_t last = trial_.values.back().step;
    if (nth > recorded) return last + (nth - recorded) * std::max<std::int64_t>(1, last / recorded);
    return trial_.values[static_cast<std::size_t>(nth - 1)].step;
  }
  double ValueAfter(std::int64_t nth) const override {
    const auto index = std::min(static_cast<std::size_t>(nth), trial_.values.size()) - 1;
    return trial_.values[index].value;
  }
  std::map<std::string, double> FiguresAfter(std::int64_t nth) const override {
    if (nth >= steps()) return trial_.last_figures;
    if (nth > std::ssize(trial_.values)) return {};
    const auto told = trial_.figures.find(StepNumber(nth));
    return told == trial_.figures.end() ? std::map<std::string, double>() : told->second;
  }
  Pace On(int, int replicas) const override {
    // From the nearest number of slots that the trial trained on.
    const auto distance = [replicas](int slots) {
      return std::abs(std::log(static_cast<double>(slots) / replicas));
    };
    auto nearest = trial_.step_s.begin();
    for (auto it = nearest; it != trial_.step_s.end(); ++it) {
      if (distance(it->first) < distance(nearest->first)) nearest = it;
    }
    const double ratio = static_cast<double>(nearest->first) / replicas;
    const double step_s = nearest->second * std::pow(ratio, exponent_);
    return {1, step_s, std::min(step_s, nearest->second * ratio)};
  }

 private:
  const RecordedTrial& trial_;
  const double exponent_;
  const std::int64_t longest_;
};

// What the trial told of these, by step, and the newest of each; NaN: it has told none.
void TakeFigures(const Trial& trial, const std::vector<std::string>& names,
                 RecordedTrial& recorded) {
  for (const std::string& name : names) recorded.last_figures[name] = std::nan("");
  for (const auto& [step, figures] : trial.extra) {
    for (const std::string& name : names) {
      const auto told = figures.find(name);
      if (told == figures.end()) continue;
      recorded.figures[step].insert(*told);
      recorded.last_figures[name] = told->second;
    }
  }
}

class Recorded : public RecordedLoad {
 public:
  Recorded(const TunerState& state, const espalier::Study& study)
      : id_(study.id), spec_(study.spec) {
    double pause_s = 0;
    int pauses = 0;
    for (const TrialId id : study.trials) {
      const Trial& trial = state.trials.at(id);
      for (const Resize& resize : trial.resizes) {
        pause_s += resize.pause_s;
        ++pauses;
      }
      if (trial.values.empty()) continue;
      const std::int64_t batch =
          std::max(trial.figures.Whole(Figure::kBatchSize), trial.values.back().batch_size);
      trials_.push_back({.origin = {trial.id, trial.number},
                         .parameters = trial.parameters,
                         .values = trial.values,
                         .figures = {},
                         .last_figures = {},
                         .complete = trial.state == TrialState::kComplete,
                         .batch = std::max<std::int64_t>(1, batch),
                         .step_s = StepSeconds(trial)});
      TakeFigures(trial, FiguresNeeded(spec_), trials_.back());
      longest_ = std::max(longest_, static_cast<std::int64_t>(trial.values.size()));
    }
    if (pauses > 0) mean_pause_s_ = pause_s / pauses;
    exponent_ = FitExponent(trials_);
    spec_.max_trials = std::ssize(trials_);
    if (spec_.queued()) spec_.kind = StudyKind::kTuned;
    spec_.sampler = {"random", {}};  // its choices are replaced by what was recorded
    spec_.points.clear();
    spec_.fixed.clear();
    spec_.prior.clear();
    spec_.like = {};
    spec_.population = {};  // clones were recorded as trials of their own
    spec_.batch_mode = BatchMode::kFixed;
    spec_.time_limit_s = 0;
  }

  bool empty() const { return trials_.empty(); }
  StudySpec Study() const override { return spec_; }
  Parameters ParametersOf(const Trial& trial) override { return At(trial).parameters; }
  bool TellsFigures() const override { return true; }
  std::unique_ptr<TrialTruth> Begin(const Trial& trial) override {
    return std::make_unique<RecordedTruth>(At(trial), exponent_, longest_);
  }
  std::optional<double> MeanPause() const override { return mean_pause_s_; }
  Origin OriginOf(const Trial& trial) const override { return At(trial).origin; }
  StudyId study_id() const override { return id_; }
  int BeyondRecord(const TunerState& simulated) const override {
    int count = 0;
    for (const auto& [id, trial] : simulated.trials) {
      count += trial.values.size() > At(trial).values.size();
    }
    return count;
  }

 private:
  const RecordedTrial& At(const Trial& trial) const {
    ESPALIER_CHECK(trial.number < std::ssize(trials_), "a replay has the trials of its record");
    return trials_[static_cast<std::size_t>(trial.number)];
  }

  const StudyId id_;
  StudySpec spec_;
  std::vector<RecordedTrial> trials_;
  std::int64_t longest_ = 0;
  double exponent_ = 1;
  std::optional<double> mean_pause_s_;
};

// The newest moment that the record of a study tells of.
Time LastMoment(const TunerState& state, const Study& study) {
  if (study.ended != Time{}) return study.ended;
  Time last = study.created;
  for (const TrialId id : study.trials) {
    const Trial& trial = state.trials.at(id);
    last = std::max({last, trial.created, trial.ended});
    if (!trial.values.empty()) last = std::max(last, trial.values.back().at);
    for (const SlotSpan& span : trial.spans) last = std::max({last, span.from, span.to});
  }
  return last;
}

// Slots that the trial had held by then, times how long.
double SlotSecondsBy(const Trial& trial, Time end) {
  double sum_s = 0;
  for (const SlotSpan& span : trial.spans) {
    const Time to = span.to == Time{} ? end : std::min(span.to, end);
    sum_s += std::max(0.0, SecondsBetween(span.from, to)) * static_cast<double>(span.slots.size());
  }
  return sum_s;
}

}  // namespace

std::vector<std::pair<std::string, double>> FiguresOfRecord(const TunerState& state,
                                                            const Study& study) {
  const Time end = LastMoment(state, study);
  double slot_seconds = 0;
  int resizes = 0;
  std::map<TrialState, int> by_state;
  for (const TrialId id : study.trials) {
    const Trial& trial = state.trials.at(id);
    slot_seconds += SlotSecondsBy(trial, end);
    ++by_state[trial.state];
    for (const Resize& resize : trial.resizes)
      resizes += resize.from_replicas != resize.to_replicas;
  }
  double best = std::nan("");
  double slot_seconds_on_best = 0;
  if (const auto number = BestTrial(state, study)) {
    const Trial& trial = state.trials.at(study.trials[static_cast<std::size_t>(*number)]);
    best = BestValue(trial, study.spec.direction()).value_or(best);
    slot_seconds_on_best = SlotSecondsBy(trial, end);
  }
  const auto pauses =
      std::count_if(study.decisions.begin(), study.decisions.end(),
                    [](const Decision& decision) { return decision.kind == DecisionKind::kPause; });
  const auto trials = static_cast<int>(std::ssize(study.trials));
  const int complete = by_state[TrialState::kComplete];
  const int pruned = by_state[TrialState::kPruned];
  const int failed = by_state[TrialState::kFail];
  const bool ended = study.state != StudyState::kRunning;
  return {{"finish_s", ended ? SecondsBetween(study.created, end) : std::nan("")},
          {"best", best},
          {"slot_seconds", slot_seconds},
          {"slot_seconds_on_best", slot_seconds_on_best},
          {"resizes", resizes},
          {"pauses", static_cast<double>(pauses)},
          {"trials", trials},
          {"complete", complete},
          {"pruned", pruned},
          {"failed", failed},
          {"unfinished", trials - complete - pruned - failed}};
}

absl::StatusOr<std::unique_ptr<RecordedLoad>> MakeRecordedLoad(const TunerState& state,
                                                               const std::string& study) {
  const Study* found = state.FindStudy(study);
  if (found == nullptr) {
    std::string known;
    for (const auto& [id, other] : state.studies) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", other.spec.name);
    }
    return absl::NotFoundError(absl::StrCat("no study \"", study, "\" in the record; it holds ",
                                            known.empty() ? "none" : known));
  }
  auto load = std::make_unique<Recorded>(state, *found);
  if (load->empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("study \"", study, "\" has no reported value: nothing to replay"));
  }
  return load;
}

}  // namespace espalier
