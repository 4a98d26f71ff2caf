#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search_spaces/parameter.h"
#include "tuner/core/state/study.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/views.h"

namespace espalier::view {

// Where a clone comes from, with its parent's ids, so that a page can lead there.
struct ShownLineage {
  Lineage of;
  TrialId parent;
  TrialId founder;
  Parameters set;  // its own where its parent has another value or none
  Parameters was;  // its parent's of these, as far as it has them
};

// nullopt: the trial began afresh.
std::optional<ShownLineage> LineageOf(const Trial& trial, const Study& study,
                                      const TunerState& state);

// null or an object, after its key.
void Put(JsonText& json, const std::optional<ShownLineage>& lineage);
// An object, after its key.
void Put(JsonText& json, const Parameters& parameters);

// A trial that began with a checkpoint of another one.
struct ShownClone {
  TrialId id;
  std::int64_t number = 0;
  TrialState state = TrialState::kWaiting;
  std::optional<std::int64_t> step{};  // of that checkpoint; none: it has not got it
};

inline constexpr std::size_t kClonesOfTrial = 1000;  // the oldest ones

// Those of the trial, by number, looked for a slice at a time. None where it is gone.
absl::StatusOr<std::vector<ShownClone>> ClonesOf(const Source& source, TrialId parent);

}  // namespace espalier::view
