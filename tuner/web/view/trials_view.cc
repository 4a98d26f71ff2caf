#include <algorithm>
#include <optional>
#include <string>

#include "tuner/core/state/refusals.h"
#include "tuner/web/view/heading.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/slices.h"
#include "tuner/web/view/trial_table.h"
#include "tuner/web/view/views.h"

namespace espalier::view {

absl::StatusOr<std::string> TrialsJson(const Source& source, StudyId id,
                                       const TrialsWanted& wanted) {
  Heading heading;
  std::optional<TrialTable> table;
  std::int64_t total = 0;
  std::int64_t next = 0;  // the number of the trial that is copied next
  std::int64_t last = 0;
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
      next = total - 1 - std::min(wanted.from, total);
      last = std::max<std::int64_t>(0, next + 1 - wanted.rows);
    }
    for (; next >= last && slice.HasRoom(); --next) {
      const Trial& trial = state.trials.at(study.trials[static_cast<std::size_t>(next)]);
      table->Add(trial, study, view);
      slice.Spend(TrialTable::UnitsOf(trial));
    }
    return next < last;
  }));
  if (!found) return NoStudy(id);
  JsonText json;
  json.Object([&] {
    PutHeading(json, heading);
    json.Member("from", wanted.from);
    json.Member("rows", table->rows());
    json.Member("total", total);
    table->PutInto(json);
  });
  return json.Take();
}

}  // namespace espalier::view
