#pragma once

#include <string_view>

namespace espalier {

// The SQLite files of Optuna's RDBStorage, as 5.0.0 creates them. 3.2 and everything since have the
// same tables. Datetimes are local in files of 4.x and UTC in those of 5.0: version_info says whose
// a file is.

inline constexpr std::string_view kOptunaAlembicVersion = "v3.2.0.a";
inline constexpr std::string_view kOptunaLibraryVersion = "5.0.0";
inline constexpr int kOptunaSchemaVersion = 12;
inline constexpr int kOptunaFirstVersionInUtc = 5;

// Every table that holds something of a study.
inline constexpr std::string_view kOptunaTables[] = {"studies",
                                                     "version_info",
                                                     "study_directions",
                                                     "study_user_attributes",
                                                     "study_system_attributes",
                                                     "trials",
                                                     "trial_user_attributes",
                                                     "trial_system_attributes",
                                                     "trial_params",
                                                     "trial_values",
                                                     "trial_intermediate_values",
                                                     "alembic_version"};

// Statements that make an empty file; but for spaces what sqlite_schema of a real one shows.
extern const char* const kOptunaSchema;

// In its columns *value_type.
inline constexpr std::string_view kFinite = "FINITE";
inline constexpr std::string_view kPositiveInfinity = "INF_POS";
inline constexpr std::string_view kNegativeInfinity = "INF_NEG";
inline constexpr std::string_view kNotANumber = "NAN";

}  // namespace espalier
