#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/core/state/refusals.h"
#include "tuner/web/view/heading.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/slices.h"
#include "tuner/web/view/trial_table.h"
#include "tuner/web/view/views.h"

namespace espalier::view {

namespace {

// Which trials are wanted: a row of numbers, or those that have changed.
struct Wanted {
  std::vector<std::int64_t> numbers;  // of those that have changed, if they alone are wanted
  bool complete = true;
};

// The numbers of those that have changed, the newest trial first.
Wanted ChangedTrials(const RevisionLog* log, StudyId study, std::int64_t since) {
  Wanted wanted;
  if (log == nullptr) return {.numbers = {}, .complete = false};
  // Asked where nothing changes meanwhile.
  const RevisionLog::News news =
      log->Since(since, study, static_cast<std::size_t>(TrialsWanted::kMaxRows));
  wanted.complete = news.complete && !news.more;
  if (!wanted.complete) return wanted;
  for (const RevisionLog::ChangedTrial& trial : news.trials) wanted.numbers.push_back(trial.number);
  std::sort(wanted.numbers.rbegin(), wanted.numbers.rend());
  return wanted;
}

// Numbers one after the other, downwards.
std::vector<std::int64_t> NumbersFrom(std::int64_t first, std::int64_t rows) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t number = first; number >= 0 && number > first - rows; --number) {
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

absl::StatusOr<std::string> TrialsJson(const Source& source, StudyId id,
                                       const TrialsWanted& wanted) {
  Heading heading;
  std::optional<TrialTable> table;
  std::int64_t total = 0;
  Wanted chosen;
  std::size_t next = 0;  // of them
  bool found = false;
  ESPALIER_RETURN_IF_ERROR(ReadInSlices(source.tuner, [&](const View& view, Slice& slice) {
    const TunerState& state = view.core.state();
    const auto at = state.studies.find(id);
    found = at != state.studies.end();
    if (!found) return true;
    const Study& study = at->second;
    if (!table) {
      heading = HeadingOf(source);
      table.emplace(study);
      // Trials that are created from now on are none of these.
      total = std::ssize(study.trials);
      if (wanted.changed_since) {
        chosen = ChangedTrials(source.log, id, *wanted.changed_since);
      } else {
        chosen.numbers = NumbersFrom(total - 1 - std::min(wanted.from, total), wanted.rows);
      }
    }
    for (; next < chosen.numbers.size() && slice.HasRoom(); ++next) {
      const auto number = static_cast<std::size_t>(chosen.numbers[next]);
      const Trial& trial = state.trials.at(study.trials[number]);
      table->Add(trial, study, view);
      slice.Spend(TrialTable::UnitsOf(trial));
    }
    return next == chosen.numbers.size();
  }));
  if (!found) return NoStudy(id);
  JsonText json;
  json.Object([&] {
    PutHeading(json, heading);
    json.Member("from", wanted.from);
    json.Member("rows", table->rows());
    json.Member("complete", chosen.complete);
    json.Member("total", total);
    table->PutInto(json);
  });
  return json.Take();
}

}  // namespace espalier::view
