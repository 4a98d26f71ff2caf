#pragma once

// What single columns mean. Together with load.cc and change_writer.cc this is the mapping from
// rows to core.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tuner/core/state/study.h"
#include "tuner/storage/database.h"

namespace espalier {

absl::StatusOr<StudyState> StudyStateFromText(std::string_view text);
absl::StatusOr<TrialState> TrialStateFromText(std::string_view text);
absl::StatusOr<DecisionKind> DecisionKindFromText(std::string_view text);

// "1:0,1:1,2:0": node and index.
std::string SlotsToText(const std::vector<Slot>& slots);
absl::StatusOr<std::vector<Slot>> SlotsFromText(std::string_view text);

// "{"promise":0.5,...}" with all of them, each to the bit; empty: none.
std::string FiguresToText(const std::optional<AllocationFigures>& figures);
absl::StatusOr<std::optional<AllocationFigures>> FiguresFromText(const std::string& text);

// "{"A":"b"}"; empty: none. Values that are no texts are left out.
std::string EnvironmentToText(const ProcessVariables& environment);
ProcessVariables EnvironmentFromText(const std::string& text);

// The columns of a study and of a trial that change after its creation, in the order in which the
// functions below bind and read them. `id` is bound last.
inline constexpr std::string_view kStudyHead =
    "max_trials, time_limit_s, state, reason, ended_us, active_s, running_since_us";
inline constexpr std::string_view kTrialHead =
    "state, value, started_us, ended_us, reason, last_output, generation, restarts, pinned_slots, "
    "checkpoint, checkpoint_step, checkpoint_name, checkpoint_fingerprint, checkpoint_us, "
    "checkpoint_generation, held, cancelled, environment, joins_failed, joins_work_at, "
    "join_failure, join_failed_us, join_failed_step, ranks_go_on, ranks_stop, saving_go_on, "
    "saving_stop";

// Rows of table meta: the highest ids that were given before a study was deleted.
inline constexpr std::string_view kLastStudy = "last_study";
inline constexpr std::string_view kLastTrial = "last_trial";
// Of replicas: see TunerState.
inline constexpr std::string_view kReplicaIdsBelow = "replica_ids_below";
inline constexpr std::string_view kReplicaIdsFrom = "replica_ids_from";

absl::Status ReadHead(const Statement& row, int first_column, Study& study);
absl::Status ReadHead(const Statement& row, int first_column, Trial& trial);
absl::Status WriteHead(Statement& update, const Study& study);
absl::Status WriteHead(Statement& update, const Trial& trial);

}  // namespace espalier
