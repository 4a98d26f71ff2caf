#pragma once

#include <string>
#include <utility>

namespace espalier {

// What each schema added, undone: the row of 9 takes a database of version 10 to 9.
inline const std::pair<int, std::string> kUndoSql[] = {
    {17, "ALTER TABLE trials DROP COLUMN lineage; "},
    {16, "ALTER TABLE trials DROP COLUMN draw; "},
    {15,
     "ALTER TABLE decisions DROP COLUMN figures; ALTER TABLE trial_values DROP COLUMN promise; "
     "ALTER TABLE trial_values DROP COLUMN goodput; DROP TABLE node_events; "},
    {14,
     "ALTER TABLE trials DROP COLUMN saving_go_on; ALTER TABLE trials DROP COLUMN saving_stop; "},
    {13,
     "DROP TABLE rank_values; ALTER TABLE trials DROP COLUMN ranks_go_on; "
     "ALTER TABLE trials DROP COLUMN ranks_stop; "},
    {12,
     "ALTER TABLE trials DROP COLUMN joins_failed; ALTER TABLE trials DROP COLUMN joins_work_at; "
     "ALTER TABLE trials DROP COLUMN join_failure; "
     "ALTER TABLE trials DROP COLUMN join_failed_us; "
     "ALTER TABLE trials DROP COLUMN join_failed_step; "},
    {11, "DROP TABLE node_terms; "},
    {10,
     "ALTER TABLE figures RENAME TO rows; "
     "CREATE TABLE figures (trial INTEGER PRIMARY KEY REFERENCES trials (id), "
     "step_time_s REAL NOT NULL, sync_share REAL NOT NULL, noise_scale REAL NOT NULL, "
     "learning_rate REAL NOT NULL, goodput REAL NOT NULL, throughput REAL NOT NULL, "
     "loss_scale REAL NOT NULL, batch_size INTEGER NOT NULL, atomic_batch_size INTEGER NOT NULL, "
     "accumulation_steps INTEGER NOT NULL, memory_bytes INTEGER NOT NULL, "
     "device_memory_bytes INTEGER NOT NULL, skipped_steps INTEGER NOT NULL); "
     "INSERT INTO figures SELECT trial, "
     "ifnull(max(CASE name WHEN 'step_time_s' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'sync_share' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'noise_scale' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'learning_rate' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'goodput' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'throughput' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'loss_scale' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'batch_size' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'atomic_batch_size' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'accumulation_steps' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'memory_bytes' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'device_memory_bytes' THEN value END), 0), "
     "ifnull(max(CASE name WHEN 'skipped_steps' THEN value END), 0) "
     "FROM rows GROUP BY trial; DROP TABLE rows; "},
    {9,
     "ALTER TABLE trials DROP COLUMN held; ALTER TABLE trials DROP COLUMN cancelled; "
     "ALTER TABLE trials DROP COLUMN environment; "},
    {8, "DROP TABLE tokens; "},
    {7,
     "DROP TABLE checkpoint_copies; ALTER TABLE trials DROP COLUMN checkpoint_step; "
     "ALTER TABLE trials DROP COLUMN checkpoint_name; "
     "ALTER TABLE trials DROP COLUMN checkpoint_fingerprint; "
     "ALTER TABLE trials DROP COLUMN checkpoint_us; "
     "ALTER TABLE trials DROP COLUMN checkpoint_generation; "},
    {6, "DROP TABLE pool_policy; "},
    {5, "DROP TABLE extra_figures; "},
    {4, "DROP TABLE deleted_studies; "},
    {3,
     "DROP TABLE study_attributes; DROP TABLE trial_attributes; DROP TABLE suggested; "
     "DROP TABLE suggestions; DROP TABLE other_values; "},
    {2, "DROP TABLE drained_nodes; "},
    {1,
     "DROP TABLE figures; ALTER TABLE resizes DROP COLUMN form_s; "
     "ALTER TABLE resizes DROP COLUMN broadcast_s; "},
};

// Takes a database of the newest schema back to an older one.
inline std::string UndoTo(int version) {
  std::string sql;
  for (const auto& [to, undo] : kUndoSql) {
    if (to >= version) sql += undo;
  }
  return sql + "PRAGMA user_version = " + std::to_string(version) + "; ";
}

}  // namespace espalier
