#include "tuner/storage/load.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "search_spaces/formats/optuna/constraints.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/storage/rows.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

namespace {

// Databases keep what users wrote. A policy that has been replaced by one that takes its options is
// run by that one; the study's text stays.
constexpr std::pair<std::string_view, std::string_view> kRenamedPolicies[] = {
    {"marginal_gain", "promise_goodput"}};

void FollowRenames(Study& study) {
  for (const auto& [before, now] : kRenamedPolicies) {
    if (study.spec.policy.name != before) continue;
    study.spec.policy.name = now;
    if (study.state != StudyState::kRunning) return;  // nothing will be decided by it
    spdlog::warn("study \"{}\": policy \"{}\" is no more, \"{}\" takes its place and its options",
                 study.spec.name, before, now);
    return;
  }
}

// What an error carries: the study whose record it is about, as decimal digits, and the record.
constexpr char kStudyPayload[] = "espalier.study";
constexpr char kRecordPayload[] = "espalier.record";

class Loader {
 public:
  Loader(Database& database, std::size_t decisions_of_a_study)
      : database_(database), decisions_of_a_study_(decisions_of_a_study) {}

  absl::StatusOr<TunerState> Load() {
    ESPALIER_RETURN_IF_ERROR(LeaveOutDeleted());
    ESPALIER_RETURN_IF_ERROR(LoadMeta());
    ESPALIER_RETURN_IF_ERROR(LoadNodes());
    ESPALIER_RETURN_IF_ERROR(LoadStudies());
    ESPALIER_RETURN_IF_ERROR(LoadDecisions());
    ESPALIER_RETURN_IF_ERROR(LoadTrials());
    ESPALIER_RETURN_IF_ERROR(LoadValues());
    ESPALIER_RETURN_IF_ERROR(LoadExtra());
    ESPALIER_RETURN_IF_ERROR(LoadRankValues());
    ESPALIER_RETURN_IF_ERROR(LoadCopies());
    ESPALIER_RETURN_IF_ERROR(LoadSpans());
    ESPALIER_RETURN_IF_ERROR(LoadResizes());
    ESPALIER_RETURN_IF_ERROR(LoadFigures());
    ESPALIER_RETURN_IF_ERROR(LoadAttributes());
    ESPALIER_RETURN_IF_ERROR(LoadSuggestions());
    ESPALIER_RETURN_IF_ERROR(LoadOtherValues());
    FollowFigures();
    state_.Recount();
    return std::move(state_);
  }

 private:
  absl::Status Damaged(std::string_view what) const {
    return absl::DataLossError(
        absl::StrCat("database ", database_.path(), ": ", std::string(what),
                     "; restore a backup (tuner db restore), or use another file"));
  }
  // That one study can go its own way, and the others on.
  absl::Status Damaged(std::string_view what, StudyId study) const {
    absl::Status status = absl::DataLossError(absl::StrCat(
        "database ", database_.path(), ": ", std::string(what), "; `tuner db set-aside ",
        database_.path(), " OTHER.db` takes what is of study ", study.value,
        " out of it, or restore a backup (tuner db restore)"));
    status.SetPayload(kStudyPayload, absl::Cord(absl::StrCat(study.value)));
    status.SetPayload(kRecordPayload, absl::Cord(std::string(what)));
    return status;
  }

  // Calls read(row) for each row; an error of it is said of `what` and the integer in column 0,
  // which is of the study study_of(row).
  template <typename Read, typename StudyOfRow>
  absl::Status ForEach(std::string_view what, std::string_view sql, Read read,
                       StudyOfRow study_of) {
    ESPALIER_ASSIGN_OR_RETURN(Statement row, database_.Prepare(sql));
    while (true) {
      ESPALIER_ASSIGN_OR_RETURN(const bool more, row.Step());
      if (!more) return absl::OkStatus();
      const absl::Status status = read(std::as_const(row));
      if (status.ok()) continue;
      const std::string text =
          absl::StrCat(std::string(what), " ", row.Integer(0), ": ", std::string(status.message()));
      const StudyId study = study_of(std::as_const(row));
      return study.value > 0 ? Damaged(text, study) : Damaged(text);
    }
  }
  template <typename Read>
  absl::Status ForEach(std::string_view what, std::string_view sql, Read read) {
    return ForEach(what, sql, read, [](const Statement&) { return StudyId(); });
  }

  // Reads rows of studies that have not been deleted: column `study` names them, and is number
  // `study_at` of those selected.
  template <typename Read>
  absl::Status ForEachOfStudies(std::string_view what, std::string_view select,
                                std::string_view study, std::string_view order, Read read,
                                int study_at = 0) {
    return ForEach(what,
                   absl::StrCat(std::string(select), " WHERE ", std::string(study),
                                no_deleted_study_, " ORDER BY ", std::string(order)),
                   read,
                   [study_at](const Statement& row) { return StudyId(row.Integer(study_at)); });
  }

  // Reads rows of trials, in the order of trials and then by `order`: column 0 is its id.
  template <typename Read>
  absl::Status ForEachOfTrials(std::string_view what, std::string_view select,
                               std::string_view order, Read read) {
    auto trial = state_.trials.begin();
    const std::string sql = absl::StrCat(std::string(select), " WHERE trial", no_deleted_trial_,
                                         " ORDER BY trial", std::string(order));
    const auto read_of_trial = [&](const Statement& row) {
      while (trial != state_.trials.end() && trial->first.value < row.Integer(0)) ++trial;
      if (trial == state_.trials.end() || trial->first.value != row.Integer(0)) {
        return absl::DataLossError("there is no such trial");
      }
      return read(row, trial->second);
    };
    return ForEach(what, sql, read_of_trial, [this](const Statement& row) {
      const auto known = state_.trials.find(TrialId(row.Integer(0)));
      return known == state_.trials.end() ? StudyId() : known->second.study;
    });
  }

  absl::StatusOr<Study*> StudyOf(const Statement& row) {
    const auto study = state_.studies.find(StudyId(row.Integer(0)));
    if (study == state_.studies.end()) return absl::DataLossError("there is no such study");
    return &study->second;
  }

  // Rows of deleted studies may still be there. Where there are none, nothing is spent on them.
  absl::Status LeaveOutDeleted() {
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t deleted,
                              database_.QueryInteger("SELECT count(*) FROM deleted_studies"));
    if (deleted == 0) return absl::OkStatus();
    constexpr char kDeleted[] = "(SELECT study FROM deleted_studies)";
    no_deleted_study_ = absl::StrCat(" NOT IN ", kDeleted);
    no_deleted_trial_ =
        absl::StrCat(" NOT IN (SELECT id FROM trials WHERE study IN ", kDeleted, ")");
    return absl::OkStatus();
  }

  absl::Status LoadMeta() {
    return ForEach("", "SELECT 0, key, value FROM meta", [&](const Statement& row) {
      const std::string key = row.Text(1);
      if (key == kLastStudy) state_.last_study = StudyId(row.Integer(2));
      if (key == kLastTrial) state_.last_trial = TrialId(row.Integer(2));
      if (key == kReplicaIdsBelow) state_.replica_ids_below = row.Integer(2);
      if (key == kReplicaIdsFrom) state_.replica_ids_from = row.Integer(2);
      return absl::OkStatus();
    });
  }

  absl::Status LoadNodes() {
    ESPALIER_RETURN_IF_ERROR(
        ForEach("node", "SELECT id, name FROM nodes", [&](const Statement& row) {
          state_.nodes.emplace(row.Integer(0), row.Text(1));
          return absl::OkStatus();
        }));
    ESPALIER_RETURN_IF_ERROR(
        ForEach("terms of node",
                "SELECT node, since_us, slots, gpu_type, spot, price_per_hour FROM node_terms "
                "ORDER BY node, number",
                [&](const Statement& row) {
                  state_.node_terms[NodeId(row.Integer(0))].push_back(
                      {.since = row.Moment(1),
                       .slots = static_cast<int>(row.Integer(2)),
                       .gpu_type = row.Text(3),
                       .spot = row.Integer(4) != 0,
                       .price_per_hour = row.Double(5)});
                  return absl::OkStatus();
                }));
    ESPALIER_RETURN_IF_ERROR(LoadNodeEvents());
    ESPALIER_RETURN_IF_ERROR(LoadPolicy());
    ESPALIER_RETURN_IF_ERROR(LoadTokens());
    return ForEach("drained node", "SELECT node, ends_us FROM drained_nodes",
                   [&](const Statement& row) {
                     state_.drained.emplace(row.Integer(0), row.Moment(1));
                     return absl::OkStatus();
                   });
  }

  absl::Status LoadNodeEvents() {
    return ForEach("event of node",
                   "SELECT node, up, at_us, slots, gpu_type, spot, price_per_hour, why "
                   "FROM node_events ORDER BY number",
                   [&](const Statement& row) {
                     const NodeTerms terms{.since = row.Moment(2),
                                           .slots = row.Int(3),
                                           .gpu_type = row.Text(4),
                                           .spot = row.Integer(5) != 0,
                                           .price_per_hour = row.Double(6)};
                     state_.node_events.push_back({.id = NodeId(row.Integer(0)),
                                                   .up = row.Integer(1) != 0,
                                                   .terms = terms,
                                                   .why = row.Text(7)});
                     return absl::OkStatus();
                   });
  }

  // One row for each option, and one without for the policy itself.
  absl::Status LoadPolicy() {
    return ForEach("the pool's policy", "SELECT 0, name, option, value FROM pool_policy",
                   [&](const Statement& row) {
                     if (!state_.policy) state_.policy.emplace();
                     state_.policy->name = row.Text(1);
                     if (const std::string option = row.Text(2); !option.empty()) {
                       state_.policy->options[option] = row.Double(3);
                     }
                     return absl::OkStatus();
                   });
  }

  absl::Status LoadTokens() {
    return ForEach("token",
                   "SELECT 0, id, hash, role, name, created_us, expires_us, removed_us FROM tokens",
                   [&](const Statement& row) {
                     const KeptToken token{.id = row.Text(1),
                                           .hash = row.Text(2),
                                           .role = row.Text(3),
                                           .name = row.Text(4),
                                           .created = row.Moment(5),
                                           .expires = row.Moment(6),
                                           .removed = row.Moment(7)};
                     state_.tokens.insert_or_assign(token.id, token);
                     return absl::OkStatus();
                   });
  }

  absl::Status LoadStudies() {
    const std::string sql = absl::StrCat("SELECT id, json, name, created_us, ",
                                         std::string(kStudyHead), " FROM studies");
    return ForEachOfStudies("study", sql, "id", "id", [&](const Statement& row) {
      Study study;
      study.id = StudyId(row.Integer(0));
      // The text has its name and directory in it: neither is taken from here.
      ESPALIER_ASSIGN_OR_RETURN(study.spec, ParseStudy(row.Text(1), row.Text(2), "/"));
      study.created = row.Moment(3);
      study.asked = AskedForBy(study.spec);
      ESPALIER_RETURN_IF_ERROR(ReadHead(row, 4, study));
      FollowRenames(study);
      const StudyId id = study.id;
      state_.study_ids.emplace(study.spec.name, id);
      state_.studies.emplace(id, std::move(study));
      state_.last_study = std::max(state_.last_study, id);
      return absl::OkStatus();
    });
  }

  absl::Status LoadDecisions() {
    return ForEachOfStudies(
        "decision of study",
        "SELECT study, at_us, trial_number, kind, from_slots, to_slots, reason, figures "
        "FROM decisions",
        "study", "study, number", [&](const Statement& row) {
          ESPALIER_ASSIGN_OR_RETURN(Study* const study, StudyOf(row));
          Decision decision{.at = row.Moment(1),
                            .trial_number = row.Integer(2),
                            .kind = DecisionKind::kStudy,
                            .from_slots = row.Int(4),
                            .to_slots = row.Int(5),
                            .reason = row.Text(6)};
          ESPALIER_ASSIGN_OR_RETURN(decision.kind, DecisionKindFromText(row.Text(3)));
          ESPALIER_ASSIGN_OR_RETURN(decision.figures, FiguresFromText(row.Text(7)));
          study->decisions.push_back(std::move(decision));
          ++study->decisions_made;
          if (study->decisions.size() > decisions_of_a_study_) study->decisions.pop_front();
          return absl::OkStatus();
        });
  }

  absl::Status LoadTrials() {
    const std::string sql =
        absl::StrCat("SELECT id, study, number, parameters, created_us, draw, lineage, ",
                     std::string(kTrialHead), " FROM trials");
    return ForEachOfStudies(
        "trial", sql, "study", "id",
        [&](const Statement& row) {
          Trial trial;
          trial.id = TrialId(row.Integer(0));
          trial.study = StudyId(row.Integer(1));
          trial.number = row.Integer(2);
          ESPALIER_ASSIGN_OR_RETURN(trial.parameters, ParametersFromRecord(row.Text(3)));
          trial.created = row.Moment(4);
          trial.draw = row.Text(5);
          ESPALIER_ASSIGN_OR_RETURN(trial.lineage, ReadLineage(row.Text(6)));
          ESPALIER_RETURN_IF_ERROR(ReadHead(row, 7, trial));
          const auto study = state_.studies.find(trial.study);
          if (study == state_.studies.end() || std::ssize(study->second.trials) != trial.number) {
            return absl::DataLossError(absl::StrCat("number ", trial.number, " in study ",
                                                    trial.study.value, " is not the next"));
          }
          study->second.trials.push_back(trial.id);
          if (trial.lineage->cloned()) ++study->second.clones;
          const TrialId id = trial.id;
          state_.trials.emplace_hint(state_.trials.end(), id, std::move(trial));
          state_.last_trial = std::max(state_.last_trial, id);
          return absl::OkStatus();
        },
        /*study_at=*/1);
  }

  // A study may have a million of them: each trial's take no more memory than they need.
  absl::Status LoadValues() {
    std::vector<IntermediateValue> values;
    Trial* of = nullptr;
    ESPALIER_RETURN_IF_ERROR(
        ForEachOfTrials("value of trial",
                        "SELECT trial, step, value, progress, at_us, batch_size, promise, goodput "
                        "FROM trial_values",
                        ", step", [&values, &of](const Statement& row, Trial& trial) {
                          if (of != &trial && of != nullptr)
                            of->values.assign(values.begin(), values.end());
                          if (of != &trial) values.clear();
                          of = &trial;
                          values.push_back({.step = row.Integer(1),
                                            .value = row.Double(2),
                                            .progress = row.Double(3),
                                            .at = row.Moment(4),
                                            .batch_size = row.Integer(5),
                                            .promise = static_cast<float>(row.Double(6)),
                                            .goodput = static_cast<float>(row.Double(7))});
                          return absl::OkStatus();
                        }));
    if (of != nullptr) of->values.assign(values.begin(), values.end());
    return absl::OkStatus();
  }

  absl::Status LoadExtra() {
    return ForEachOfTrials("figure of trial", "SELECT trial, step, name, value FROM extra_figures",
                           ", step, name", [](const Statement& row, Trial& trial) {
                             trial.extra[row.Integer(1)][row.Text(2)] = row.Double(3);
                             return absl::OkStatus();
                           });
  }

  absl::Status LoadRankValues() {
    return ForEachOfTrials("rank's value of trial",
                           "SELECT trial, step, rank, value FROM rank_values", ", step, rank",
                           [](const Statement& row, Trial& trial) {
                             trial.ranks.edit().values[row.Integer(1)][row.Int(2)] = row.Double(3);
                             return absl::OkStatus();
                           });
  }

  absl::Status LoadCopies() {
    return ForEachOfTrials(
        "checkpoint of trial",
        "SELECT trial, node, step, name, fingerprint, saved_us, generation, fetched, folder "
        "FROM checkpoint_copies",
        ", node", [](const Statement& row, Trial& trial) {
          const CheckpointLabel what{.step = row.Integer(2),
                                     .name = row.Text(3),
                                     .fingerprint = row.Text(4),
                                     .at = row.Moment(5),
                                     .generation = row.Integer(6)};
          trial.copies.push_back({NodeId(row.Integer(1)), what, row.Integer(7) != 0, row.Text(8)});
          return absl::OkStatus();
        });
  }

  absl::Status LoadSpans() {
    return ForEachOfTrials("span of trial", "SELECT trial, from_us, to_us, slots FROM spans",
                           ", number", [](const Statement& row, Trial& trial) {
                             SlotSpan span{row.Moment(1), row.Moment(2), {}};
                             ESPALIER_ASSIGN_OR_RETURN(span.slots, SlotsFromText(row.Text(3)));
                             trial.spans.push_back(std::move(span));
                             return absl::OkStatus();
                           });
  }

  absl::Status LoadResizes() {
    return ForEachOfTrials(
        "resize of trial",
        "SELECT trial, at_us, generation, from_replicas, to_replicas, pause_s, after_loss, "
        "form_s, broadcast_s "
        "FROM resizes",
        ", number", [](const Statement& row, Trial& trial) {
          trial.resizes.push_back({.at = row.Moment(1),
                                   .generation = row.Integer(2),
                                   .from_replicas = row.Int(3),
                                   .to_replicas = row.Int(4),
                                   .pause_s = row.Double(5),
                                   .after_loss = row.Integer(6) != 0,
                                   .form_s = row.Double(7),
                                   .broadcast_s = row.Double(8)});
          return absl::OkStatus();
        });
  }

  absl::Status LoadFigures() {
    return ForEachOfTrials("figures of trial", "SELECT trial, name, value FROM figures", ", name",
                           [](const Statement& row, Trial& trial) {
                             // Another release may know figures that this one does not.
                             if (const FigureRow* known = FindFigure(row.Text(1))) {
                               trial.figures[known->figure] = row.Double(2);
                             }
                             return absl::OkStatus();
                           });
  }

  absl::Status LoadAttributes() {
    ESPALIER_RETURN_IF_ERROR(ForEachOfStudies(
        "attribute of study", "SELECT study, system, key, value FROM study_attributes", "study",
        "study, system, key", [&](const Statement& row) {
          ESPALIER_ASSIGN_OR_RETURN(Study* const study, StudyOf(row));
          TakeAttribute(row, study->attributes);
          return absl::OkStatus();
        }));
    return ForEachOfTrials("attribute of trial",
                           "SELECT trial, system, key, value FROM trial_attributes",
                           ", system, key", [](const Statement& row, Trial& trial) {
                             TakeAttribute(row, trial.attributes);
                             if (row.Integer(1) != 0 && IsConstraintKey(row.Text(2))) {
                               trial.constraints = ConstraintsIn(trial.attributes.system);
                             }
                             return absl::OkStatus();
                           });
  }

  static void TakeAttribute(const Statement& row, Attributes& attributes) {
    auto& space = row.Integer(1) != 0 ? attributes.system : attributes.user;
    space.emplace_hint(space.end(), row.Text(2), row.Text(3));
  }

  absl::Status LoadSuggestions() {
    ESPALIER_RETURN_IF_ERROR(ForEachOfStudies(
        "suggestion of study", "SELECT study, name, distribution, kind FROM suggestions", "study",
        "study, number", [&](const Statement& row) {
          ESPALIER_ASSIGN_OR_RETURN(Study* const study, StudyOf(row));
          study->suggestions.push_back({row.Text(1), row.Text(2), row.Text(3)});
          return absl::OkStatus();
        }));
    return ForEachOfTrials(
        "parameter of trial", "SELECT trial, suggestion, value FROM suggested", ", position",
        [this](const Statement& row, Trial& trial) {
          const std::int64_t suggestion = row.Integer(1);
          if (suggestion < 0 ||
              suggestion >= std::ssize(state_.studies.at(trial.study).suggestions)) {
            return absl::DataLossError(absl::StrCat("there is no suggestion ", suggestion));
          }
          trial.suggested.push_back({static_cast<int>(suggestion), row.Double(2)});
          return absl::OkStatus();
        });
  }

  absl::Status LoadOtherValues() {
    return ForEachOfTrials("final value of trial", "SELECT trial, value FROM other_values",
                           ", number", [](const Statement& row, Trial& trial) {
                             trial.other_values.push_back(row.Double(1));
                             return absl::OkStatus();
                           });
  }

  // Other metrics and constraints of trials that the pool runs, which are among their figures.
  void FollowFigures() {
    for (const auto& [id, study] : state_.studies) {
      const bool constrained = !study.spec.constraints.empty();
      if (study.spec.other_metrics.empty() && !constrained) continue;
      for (const TrialId trial_id : study.trials) {
        Trial& trial = state_.trials.at(trial_id);
        TakeOtherMetrics(study.spec, trial);
        // What attributes say of them does not count.
        if (constrained) trial.constraints = std::vector<double>();
        TakeConstraints(study.spec, trial);
      }
    }
  }

  Database& database_;
  const std::size_t decisions_of_a_study_;
  TunerState state_;
  std::string no_deleted_study_ = " IS NOT NULL";
  std::string no_deleted_trial_ = " IS NOT NULL";
};

}  // namespace

absl::StatusOr<TunerState> LoadState(Database& database, std::size_t decisions_of_a_study) {
  // A read transaction is one moment of the database, also while a service writes on.
  ESPALIER_RETURN_IF_ERROR(database.Execute("BEGIN"));
  absl::StatusOr<TunerState> state = Loader(database, decisions_of_a_study).Load();
  database.Rollback();
  database.ReleaseMemory();
  return state;
}

std::optional<UnloadableRecord> UnloadableRecordOf(const absl::Status& error) {
  const auto study = error.GetPayload(kStudyPayload);
  const auto record = error.GetPayload(kRecordPayload);
  std::int64_t id = 0;
  if (!study || !record || !absl::SimpleAtoi(std::string(*study), &id)) return std::nullopt;
  return UnloadableRecord{StudyId(id), std::string(*record)};
}

}  // namespace espalier
