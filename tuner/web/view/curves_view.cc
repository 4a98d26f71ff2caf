#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/web/view/best_value.h"
#include "tuner/web/view/column.h"
#include "tuner/web/view/copied_curve.h"
#include "tuner/web/view/decimation.h"
#include "tuner/web/view/heading.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/slices.h"
#include "tuner/web/view/views.h"
#include "tuner/web/view/words.h"

namespace espalier::view {

namespace {

constexpr std::size_t kValuesInUnit = 8;  // that are copied or looked at
constexpr std::size_t kTrialUnits = 2;

const Study* Find(const TunerState& state, StudyId id) {
  const auto study = state.studies.find(id);
  return study == state.studies.end() ? nullptr : &study->second;
}

// The best trials of a study by one of its metrics.
class Ranking {
 public:
  Ranking(std::size_t most, std::size_t objective) : most_(most), objective_(objective) {}

  // True: all have been looked at.
  bool GoOn(const TunerState& state, const Study& study, Slice& slice) {
    const Direction direction =
        objective_ == 0 ? study.spec.direction() : study.spec.directions.at(objective_);
    for (; next_ < study.trials.size() && slice.HasRoom(); ++next_) {
      const Trial& trial = state.trials.at(study.trials[next_]);
      const bool final = trial.value && trial.state == TrialState::kComplete;
      const std::optional<double> value =
          final && objective_ == 0 ? trial.value : ValueOf(trial, study.spec, objective_);
      slice.Spend(kTrialUnits + (final ? 0 : trial.values.size() / kValuesInUnit));
      if (!value || !std::isfinite(*value)) continue;
      ranked_.push_back({trial.id, *value, Breaks(study.spec, trial)});
    }
    const auto better = [direction](const Ranked& a, const Ranked& b) {
      if (a.breaks != b.breaks) return b.breaks;
      if (Better(direction, a.value, b.value)) return true;
      return a.id < b.id && !Better(direction, b.value, a.value);
    };
    const auto kept = std::min(std::ssize(ranked_), static_cast<std::ptrdiff_t>(most_));
    std::partial_sort(ranked_.begin(), ranked_.begin() + kept, ranked_.end(), better);
    ranked_.erase(ranked_.begin() + kept, ranked_.end());
    return next_ == study.trials.size();
  }

  std::vector<TrialId> trials() const {
    std::vector<TrialId> ids;
    for (const Ranked& ranked : ranked_) ids.push_back(ranked.id);
    return ids;
  }

 private:
  struct Ranked {
    TrialId id;
    double value;
    bool breaks;  // a constraint
  };
  std::size_t most_;
  std::size_t objective_;
  std::size_t next_ = 0;
  std::vector<Ranked> ranked_;
};

// Copies the values of trial after trial. Of one that has more than its part of kMaxValues, as many
// as that: the first, the lowest, the highest and the last of so many that follow one another.
class CurveCopies {
 public:
  static constexpr std::size_t kMaxValues = 4'000'000;

  CurveCopies(std::vector<TrialId> trials, std::size_t objective)
      : trials_(std::move(trials)),
        objective_(objective),
        most_values_(kMaxValues / std::max<std::size_t>(1, trials_.size())) {}

  // True: all have been copied. One that is gone meanwhile is left out.
  bool GoOn(const TunerState& state, const StudySpec& spec, Slice& slice) {
    while (next_ < trials_.size()) {
      if (!slice.HasRoom()) return false;
      const auto trial = state.trials.find(trials_[next_]);
      if (trial == state.trials.end() || CopyMore(trial->second, spec, slice)) {
        ++next_;
        begun_ = false;
      }
    }
    return true;
  }

  const std::vector<CopiedCurve>& curves() const { return curves_; }

 private:
  // True: all of its values are there.
  bool CopyMore(const Trial& trial, const StudySpec& spec, Slice& slice) {
    if (!begun_) {
      begun_ = true;
      curves_.push_back(HeadOfCurve(trial, spec));
      slice.Spend(trial.spans.size() / kValuesInUnit);
    }
    std::vector<IntermediateValue>& values = curves_.back().values;
    // Others may come before those that were copied: then they are seen the next time.
    const std::vector<IntermediateValue>& told = CurveOf(trial, objective_);
    auto from = told.begin();
    if (!values.empty()) {
      from = std::upper_bound(told.begin(), told.end(), values.back().step,
                              [](std::int64_t s, const auto& value) { return s < value.step; });
    }
    constexpr std::ptrdiff_t kMost = Slice::kUnits * kValuesInUnit;
    const std::span<const IntermediateValue> piece(
        from, from + std::min<std::ptrdiff_t>(told.end() - from, kMost));
    if (told.size() <= most_values_) {
      values.insert(values.end(), piece.begin(), piece.end());
    } else {
      AppendThinned(piece, told.size(), values);
    }
    slice.Spend(kTrialUnits + piece.size() / kValuesInUnit);
    return from + std::ssize(piece) == told.end();
  }

  void AppendThinned(std::span<const IntermediateValue> piece, std::size_t all,
                     std::vector<IntermediateValue>& to) const {
    if (piece.empty()) return;
    std::vector<double> x, y;
    for (const IntermediateValue& value : piece) {
      x.push_back(static_cast<double>(x.size()));
      y.push_back(value.value);
    }
    constexpr std::size_t kOfColumn = 4;
    const std::size_t columns = piece.size() * most_values_ / (kOfColumn * all);
    const PixelColumns even(0, x.back(), static_cast<int>(std::max<std::size_t>(1, columns)),
                            /*log=*/false);
    for (const std::size_t i : Decimate(x, y, even)) to.push_back(piece[i]);
  }

  std::vector<TrialId> trials_;
  std::size_t objective_;
  std::size_t most_values_;  // of one trial
  std::size_t next_ = 0;
  bool begun_ = false;  // with the next one
  std::vector<CopiedCurve> curves_;
};

// A curve on its axis, without the values that have no place there.
struct PlacedCurve {
  const CopiedCurve* curve = nullptr;
  std::vector<double> x, y;
  std::vector<const IntermediateValue*> values;
};

PlacedCurve Place(const CopiedCurve& curve, const CurvesWanted& wanted) {
  PlacedCurve placed;
  placed.curve = &curve;
  const std::vector<double> places = PlacesOn(wanted.x, wanted.log, curve);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (std::isnan(places[i])) continue;
    placed.x.push_back(places[i]);
    placed.y.push_back(curve.values[i].value);
    placed.values.push_back(&curve.values[i]);
  }
  return placed;
}

// The columns that all of the curves have in common; none: there is nothing to show.
std::optional<PixelColumns> ColumnsOf(const std::vector<PlacedCurve>& curves,
                                      const CurvesWanted& wanted) {
  std::optional<double> from, to;
  for (const PlacedCurve& curve : curves) {
    for (const double x : curve.x) {
      from = std::min(from.value_or(x), x);
      to = std::max(to.value_or(x), x);
    }
  }
  if (wanted.from) from = wanted.from;
  if (wanted.to) to = wanted.to;
  if (!from || !to || *from > *to) return std::nullopt;
  return PixelColumns(*from, *to, wanted.width, wanted.log);
}

std::string_view WordOfAxis(CurvesWanted::Axis axis) {
  switch (axis) {
    case CurvesWanted::Axis::kStep:
      return "step";
    case CurvesWanted::Axis::kTime:
      return "time";
    case CurvesWanted::Axis::kProgress:
      return "progress";
    case CurvesWanted::Axis::kSlotSeconds:
      return "slot_seconds";
  }
  return "";
}

void Put(JsonText& json, const PlacedCurve& placed, const std::optional<PixelColumns>& columns) {
  std::vector<std::size_t> kept;
  std::int64_t behind = 0;
  if (columns) {
    kept = Decimate(placed.x, placed.y, *columns);
    behind = std::count_if(placed.x.begin(), placed.x.end(),
                           [&](double x) { return columns->Has(columns->Of(x)); });
  }
  const auto each = [&](std::string_view key, const auto& number) {
    json.Key(key);
    json.Array(kept, [&](std::size_t i) { json.Value(number(i)); });
  };
  json.Object([&] {
    json.Member("trial_id", placed.curve->id.value);
    json.Member("trial", placed.curve->number);
    json.Member("state", WordOf(placed.curve->state));
    json.Member("infeasible", placed.curve->infeasible);
    json.Member("points", behind);
    each("x", [&](std::size_t i) { return placed.x[i]; });
    each("y", [&](std::size_t i) { return placed.y[i]; });
    const auto known = [](float figure) {
      return figure > 0 ? figure : std::numeric_limits<float>::quiet_NaN();
    };
    each("promise", [&](std::size_t i) { return known(placed.values[i]->promise); });
    each("goodput", [&](std::size_t i) { return known(placed.values[i]->goodput); });
    each("batch_size", [&](std::size_t i) {
      const std::int64_t size = placed.values[i]->batch_size;
      return size > 0 ? static_cast<double>(size) : kUnknown;
    });
  });
}

// The trials that are named are of the study.
absl::Status CheckTrials(const TunerState& state, const Study& study,
                         const std::vector<TrialId>& trials) {
  for (const TrialId id : trials) {
    const auto trial = state.trials.find(id);
    if (trial == state.trials.end()) return NoTrial(id);
    if (trial->second.study == study.id) continue;
    return absl::InvalidArgumentError(absl::StrCat("trials: trial ", id.value, " is of study ",
                                                   trial->second.study.value, ", not of study ",
                                                   study.id.value));
  }
  return absl::OkStatus();
}

absl::Status CheckObjective(const StudySpec& spec, std::size_t objective) {
  if (objective == 0 || objective <= spec.other_metrics.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "objective ", objective, ": study \"", spec.name, "\" has curves of ",
      spec.other_metrics.size() + 1,
      spec.other_metrics.empty() ? " metric: needs 0" : " metrics: needs a number below that"));
}

absl::Status CheckWindow(const CurvesWanted& wanted) {
  if (wanted.from && wanted.to && *wanted.from > *wanted.to) {
    return absl::InvalidArgumentError(absl::StrCat("from ", *wanted.from, ": needs to be at most ",
                                                   *wanted.to, ", which \"to\" is"));
  }
  for (const auto& end : {wanted.from, wanted.to}) {
    if (!wanted.log || !end || *end > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("from and to: an axis of the logarithm needs numbers above 0, got ", *end));
  }
  return absl::OkStatus();
}

struct Asked {
  Heading heading;
  std::optional<std::string> metric;
};

}  // namespace

absl::StatusOr<std::string> CurvesJson(const Source& source, StudyId id,
                                       const CurvesWanted& wanted) {
  ESPALIER_RETURN_IF_ERROR(CheckWindow(wanted));
  Asked asked;
  const auto objective = static_cast<std::size_t>(wanted.objective);
  Ranking ranking(static_cast<std::size_t>(wanted.best), objective);
  std::optional<CurveCopies> copies;
  if (!wanted.trials.empty()) copies.emplace(wanted.trials, objective);
  absl::Status status = absl::OkStatus();
  bool begun = false;
  ESPALIER_RETURN_IF_ERROR(ReadInSlices(source.tuner, [&](const View& view, Slice& slice) {
    const TunerState& state = view.core.state();
    const Study* const study = Find(state, id);
    if (study == nullptr) {
      status = NoStudy(id);
      return true;
    }
    if (!begun) {
      begun = true;
      asked.heading = HeadingOf(source);
      if (study->spec.has_metric) asked.metric = study->spec.metric;
      if (objective > 0 && objective <= study->spec.other_metrics.size()) {
        asked.metric = study->spec.other_metrics[objective - 1];
      }
      status = CheckObjective(study->spec, objective);
      status.Update(CheckTrials(state, *study, wanted.trials));
      if (!status.ok()) return true;
    }
    if (!copies) {
      if (!ranking.GoOn(state, *study, slice)) return false;
      copies.emplace(ranking.trials(), objective);
    }
    return copies->GoOn(state, study->spec, slice);
  }));
  if (!status.ok()) return status;
  std::vector<PlacedCurve> placed;
  for (const CopiedCurve& curve : copies->curves()) placed.push_back(Place(curve, wanted));
  const std::optional<PixelColumns> columns = ColumnsOf(placed, wanted);
  JsonText json;
  json.Object([&] {
    PutHeading(json, asked.heading);
    json.Member("x", WordOfAxis(wanted.x));
    json.Member("metric", asked.metric);
    json.Key("curves");
    json.Array(placed, [&](const PlacedCurve& curve) { Put(json, curve, columns); });
  });
  return json.Take();
}

}  // namespace espalier::view
