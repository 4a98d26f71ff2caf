#pragma once

namespace espalier {

// Rows for a new file of Optuna's (schema.h): two studies. The first has ids with a hole before it,
// and one trial of most kinds.
inline constexpr char kOptunaRows[] = R"sql(
INSERT INTO version_info VALUES (1, 12, '5.0.0');
INSERT INTO alembic_version VALUES ('v3.2.0.a');
INSERT INTO studies VALUES (4, 'first'), (5, 'second');
INSERT INTO study_directions VALUES (1, 'MINIMIZE', 4, 0), (2, 'MAXIMIZE', 4, 1), (3, 'MAXIMIZE', 5, 0);
INSERT INTO study_user_attributes VALUES (1, 4, 'who', '"é"');
INSERT INTO study_system_attributes VALUES (1, 4, 'dashboard:8:note_ver', '1');
INSERT INTO trials VALUES
  (7, 0, 4, 'COMPLETE', '2026-01-02 03:04:05.000006', '2026-01-02 03:04:06.500000'),
  (8, 1, 4, 'RUNNING', '2026-01-02 03:05:00.000000', NULL),
  (9, 2, 4, 'WAITING', NULL, NULL),
  (10, 0, 5, 'FAIL', '2026-01-01 00:00:00.000000', '2026-01-01 00:00:01.000000');
INSERT INTO trial_values VALUES (1, 7, 1, NULL, 'INF_NEG'), (2, 7, 0, 0.5, 'FINITE');
INSERT INTO trial_intermediate_values VALUES
  (1, 8, 3, NULL, 'NAN'), (2, 8, -1, 2, 'FINITE'), (3, 8, 5, NULL, 'INF_POS');
INSERT INTO trial_params VALUES
  (1, 7, 'x', 0.25, '{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}}'),
  (2, 7, 'c', 1.0, '{"name": "CategoricalDistribution", "attributes": {"choices": [null, NaN]}}');
INSERT INTO trial_user_attributes VALUES (1, 8, 'k', 'NaN');
INSERT INTO trial_system_attributes VALUES (1, 9, 'fixed_params', '{"x": 0.5}');
)sql";

}  // namespace espalier
