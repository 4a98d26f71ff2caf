#include "tuner/storage/change_writer.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tuner/storage/deleted_studies.h"
#include "tuner/storage/rows.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

namespace {

// "a, b" to "a = ?, b = ?".
std::string Assignments(std::string_view columns) {
  const std::vector<std::string> names = absl::StrSplit(std::string(columns), ", ");
  return absl::StrCat(absl::StrJoin(names, " = ?, "), " = ?");
}

std::string SelectHead(std::string_view columns, const char* table) {
  return absl::StrCat("SELECT ", std::string(columns), " FROM ", table, " WHERE id = ?");
}

std::string UpdateHead(std::string_view columns, const char* table) {
  return absl::StrCat("UPDATE ", table, " SET ", Assignments(columns), " WHERE id = ?");
}

}  // namespace

class ChangeWriter::Impl {
 public:
  absl::Status Prepare(Database& database);

  absl::Status operator()(const StudyCreated& c);
  absl::Status operator()(const StudyStateChanged& c) { return ChangeStudy(c.id, c); }
  absl::Status operator()(const StudyLimitsChanged& c) { return ChangeStudy(c.id, c); }
  absl::Status operator()(const StudyClockSet& c) { return ChangeStudy(c.id, c); }
  absl::Status operator()(const StudyDeleted& c);
  absl::Status operator()(const StudyRenamed& c);
  absl::Status operator()(const StudyAttributeSet& c) {
    return set_study_attribute_.Bind(c.id, c.system ? 1 : 0, c.key, c.value).Run();
  }
  absl::Status operator()(const SuggestionAdded& c) {
    const Suggestion& s = c.suggestion;
    return insert_suggestion_.Bind(c.id, s.name, s.distribution, s.kind).Run();
  }
  absl::Status operator()(const TrialTold& c);
  absl::Status operator()(const ParameterSuggested& c) {
    return set_suggested_.Bind(c.id, c.position, c.value.suggestion, c.value.value).Run();
  }
  absl::Status operator()(const TrialAttributeSet& c) {
    return set_trial_attribute_.Bind(c.id, c.system ? 1 : 0, c.key, c.value).Run();
  }
  absl::Status operator()(const TrialHeld& c) { return ChangeTrial(c.id, c); }
  absl::Status operator()(const TrialEnvironmentSet& c) { return ChangeTrial(c.id, c); }
  absl::Status operator()(const FinalValueReported& c) { return ChangeTrial(c.id, c); }
  absl::Status operator()(const TrialCreated& c) {
    const std::string parameters = ToJson(c.parameters);
    return insert_trial_
        .Bind(c.id, c.study, c.number, parameters, c.at, ToString(TrialState::kWaiting))
        .Run();
  }
  absl::Status operator()(const TrialDrawn& c) {
    const std::string draw = ToText(c.draw);
    return set_draw_.Bind(draw, c.id).Run();
  }
  absl::Status operator()(const TrialCloned& c) {
    const std::string lineage = ToText(c.lineage);
    return set_lineage_.Bind(lineage, c.id).Run();
  }
  absl::Status operator()(const TrialStateChanged& c) {
    ESPALIER_RETURN_IF_ERROR(delete_rank_values_.Bind(c.id).Run());
    return ChangeTrial(c.id, c);
  }
  absl::Status operator()(const ValueReported& c) {
    ESPALIER_RETURN_IF_ERROR(WriteValue(c.replace ? set_value_ : insert_value_, c.id, c.value));
    for (const auto& [name, value] : c.extra) {
      ESPALIER_RETURN_IF_ERROR(insert_extra_.Bind(c.id, c.value.step, name, value).Run());
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const RankValueTold& c) {
    return set_rank_value_.Bind(c.id, c.step, c.rank, c.value).Run();
  }
  absl::Status operator()(const RankValuesForgotten& c) {
    return delete_rank_values_below_.Bind(c.id, c.below).Run();
  }
  absl::Status operator()(const VerdictAgreed& c) { return ChangeTrial(c.id, c); }
  absl::Status operator()(const GenerationAdvanced& c) { return ChangeTrial(c.id, c); }
  absl::Status operator()(const SlotsHeldChanged& c);
  absl::Status operator()(const ResizeMeasured& c) {
    const Resize& r = c.resize;
    return insert_resize_
        .Bind(c.id, r.at, r.generation, r.from_replicas, r.to_replicas, r.pause_s,
              r.after_loss ? 1 : 0, r.form_s, r.broadcast_s)
        .Run();
  }
  absl::Status operator()(const FiguresRecorded& c) {
    ESPALIER_RETURN_IF_ERROR(delete_figures_.Bind(c.id).Run());
    for (const FigureRow& row : kFigureRows) {
      const double value = c.figures[row.figure];
      if (value == 0 && !std::signbit(value)) continue;
      ESPALIER_RETURN_IF_ERROR(insert_figure_.Bind(c.id, row.name, value).Run());
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const CheckpointRecorded& c) { return ChangeTrial(c.id, c); }
  absl::Status operator()(const CheckpointCopySet& c) {
    const CheckpointCopy& copy = c.copy;
    return set_copy_
        .Bind(c.id, copy.node, copy.what.step, copy.what.name, copy.what.fingerprint, copy.what.at,
              copy.what.generation, copy.fetched ? 1 : 0, copy.folder)
        .Run();
  }
  absl::Status operator()(const CheckpointCopyGone& c) {
    return delete_copy_.Bind(c.id, c.node).Run();
  }
  absl::Status operator()(const TrialPinned& c) { return ChangeTrial(c.id, c); }
  absl::Status operator()(const TrialRestarted& c) { return ChangeTrial(c.id, c); }
  absl::Status operator()(const JoinsFailed& c) { return ChangeTrial(c.id, c); }
  absl::Status operator()(const DecisionMade& c) {
    const Decision& d = c.decision;
    const std::string figures = FiguresToText(d.figures);
    return insert_decision_
        .Bind(c.study, d.at, d.trial_number, ToString(d.kind), d.from_slots, d.to_slots, d.reason,
              figures)
        .Run();
  }
  absl::Status operator()(const NodeRegistered& c) { return insert_node_.Bind(c.id, c.name).Run(); }
  absl::Status operator()(const NodeTermsTold& c) {
    const NodeTerms& terms = c.terms;
    return insert_terms_
        .Bind(c.id, terms.since, terms.slots, terms.gpu_type, terms.spot ? 1 : 0,
              terms.price_per_hour)
        .Run();
  }
  absl::Status operator()(const NodeSeen& c) {
    const NodeTerms& terms = c.terms;
    ESPALIER_RETURN_IF_ERROR(insert_node_event_
                                 .Bind(c.id, c.up ? 1 : 0, terms.since, terms.slots, terms.gpu_type,
                                       terms.spot ? 1 : 0, terms.price_per_hour, c.why)
                                 .Run());
    return forget_node_events_.Bind(static_cast<std::int64_t>(kNodeEventsKept)).Run();
  }
  absl::Status operator()(const NodeDrained& c) {
    ESPALIER_RETURN_IF_ERROR(delete_drained_.Bind(c.id).Run());
    return c.drained ? insert_drained_.Bind(c.id, c.ends).Run() : absl::OkStatus();
  }
  absl::Status operator()(const PoolPolicySet& c) {
    ESPALIER_RETURN_IF_ERROR(delete_policy_.Run());
    ESPALIER_RETURN_IF_ERROR(insert_policy_.Bind(std::string(), c.policy.name, 0.0).Run());
    for (const auto& [option, value] : c.policy.options) {
      ESPALIER_RETURN_IF_ERROR(insert_policy_.Bind(option, c.policy.name, value.Number()).Run());
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const TokenKept& c) {
    const KeptToken& t = c.token;
    return set_token_.Bind(t.id, t.hash, t.role, t.name, t.created, t.expires, t.removed).Run();
  }
  absl::Status operator()(const ReplicaIdsReserved& c) {
    return set_replica_ids_.Bind(c.below).Run();
  }

 private:
  template <typename Row, typename ThingId>
  absl::StatusOr<Row> ReadRow(Statement& select, const char* what, ThingId id) {
    ESPALIER_ASSIGN_OR_RETURN(const bool found, select.Bind(id).Step());
    if (!found) {
      return absl::InternalError(absl::StrCat("a change names ", what, " ", id.value,
                                              ", which the database does not have"));
    }
    Row row;
    row.id = id;
    const absl::Status status = ReadHead(select, 0, row);
    select.Reset();
    if (!status.ok()) return status;
    return row;
  }

  static absl::Status WriteValue(Statement& statement, TrialId id, const IntermediateValue& v) {
    return statement
        .Bind(id, v.step, v.value, v.progress, v.at, v.batch_size, double{v.promise},
              double{v.goodput})
        .Run();
  }

  absl::Status ChangeStudy(StudyId id, const Change& change) {
    ESPALIER_ASSIGN_OR_RETURN(Study study, ReadRow<Study>(select_study_, "study", id));
    TunerState state;
    const auto changed = state.studies.emplace(id, std::move(study)).first;
    state.Apply(change);
    return WriteHead(update_study_, changed->second);
  }

  absl::Status ChangeTrial(TrialId id, const Change& change) {
    ESPALIER_ASSIGN_OR_RETURN(Trial trial, ReadRow<Trial>(select_trial_, "trial", id));
    TunerState state;
    const auto changed = state.trials.emplace(id, std::move(trial)).first;
    state.Apply(change);
    return WriteHead(update_trial_, changed->second);
  }

  Statement insert_study_, select_study_, update_study_;
  Statement insert_trial_, select_trial_, update_trial_;
  Statement insert_extra_, set_draw_, set_lineage_;
  Statement insert_value_, insert_resize_, insert_decision_, insert_node_, set_replica_ids_;
  Statement insert_terms_, insert_node_event_, forget_node_events_;
  Statement insert_drained_, delete_drained_;
  Statement delete_policy_, insert_policy_, set_token_;
  Statement set_value_, select_study_text_, rename_study_, set_study_attribute_,
      set_trial_attribute_;
  Statement insert_suggestion_, set_suggested_, delete_other_values_, insert_other_value_;
  Statement set_meta_, free_name_, insert_deleted_;
  Statement delete_figures_;
  Statement insert_figure_;
  Statement set_copy_, delete_copy_;
  Statement set_rank_value_, delete_rank_values_, delete_rank_values_below_;
  Statement select_last_span_, delete_span_, insert_span_;
};

// A table, of what each statement says.
// NOLINTNEXTLINE(readability-function-size)
absl::Status ChangeWriter::Impl::Prepare(Database& database) {
  const std::pair<Statement*, std::string> statements[] = {
      {&insert_study_,
       "INSERT INTO studies (id, name, json, created_us, running_since_us, max_trials, "
       "time_limit_s, state, reason, ended_us, active_s) "
       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', 0, 0)"},
      {&select_study_, SelectHead(kStudyHead, "studies")},
      {&update_study_, UpdateHead(kStudyHead, "studies")},
      {&insert_trial_,
       "INSERT INTO trials (id, study, number, parameters, created_us, state, started_us, "
       "ended_us, reason, last_output, generation, restarts, pinned_slots, checkpoint) "
       "VALUES (?, ?, ?, ?, ?, ?, 0, 0, '', '', 0, 0, 0, '')"},
      {&select_trial_, SelectHead(kTrialHead, "trials")},
      {&update_trial_, UpdateHead(kTrialHead, "trials")},
      {&set_draw_, "UPDATE trials SET draw = ? WHERE id = ?"},
      {&set_lineage_, "UPDATE trials SET lineage = ? WHERE id = ?"},
      {&insert_value_,
       "INSERT INTO trial_values (trial, step, value, progress, at_us, batch_size, promise, "
       "goodput) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
      {&insert_extra_, "INSERT INTO extra_figures (trial, step, name, value) VALUES (?, ?, ?, ?)"},
      {&insert_resize_,
       "INSERT INTO resizes (trial, number, at_us, generation, from_replicas, to_replicas, "
       "pause_s, after_loss, form_s, broadcast_s) VALUES "
       "(?1, (SELECT ifnull(max(number), -1) + 1 FROM resizes WHERE trial = ?1), "
       "?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"},
      {&delete_figures_, "DELETE FROM figures WHERE trial = ?"},
      {&insert_figure_, "INSERT INTO figures (trial, name, value) VALUES (?, ?, ?)"},
      {&insert_decision_,
       "INSERT INTO decisions (study, number, at_us, trial_number, kind, from_slots, to_slots, "
       "reason, figures) VALUES "
       "(?1, (SELECT ifnull(max(number), -1) + 1 FROM decisions WHERE study = ?1), "
       "?2, ?3, ?4, ?5, ?6, ?7, ?8)"},
      {&insert_node_, "INSERT INTO nodes (id, name) VALUES (?, ?)"},
      {&insert_terms_,
       "INSERT INTO node_terms (node, number, since_us, slots, gpu_type, spot, price_per_hour) "
       "VALUES (?1, (SELECT ifnull(max(number), -1) + 1 FROM node_terms WHERE node = ?1), "
       "?2, ?3, ?4, ?5, ?6)"},
      {&insert_node_event_,
       "INSERT INTO node_events (number, node, up, at_us, slots, gpu_type, spot, price_per_hour, "
       "why) VALUES ((SELECT ifnull(max(number), -1) + 1 FROM node_events), ?, ?, ?, ?, ?, ?, ?, "
       "?)"},
      {&forget_node_events_,
       "DELETE FROM node_events WHERE number <= (SELECT max(number) FROM node_events) - ?"},
      {&delete_drained_, "DELETE FROM drained_nodes WHERE node = ?"},
      {&insert_drained_, "INSERT INTO drained_nodes (node, ends_us) VALUES (?, ?)"},
      {&delete_policy_, "DELETE FROM pool_policy"},
      {&insert_policy_, "INSERT INTO pool_policy (option, name, value) VALUES (?, ?, ?)"},
      {&set_copy_,
       "INSERT OR REPLACE INTO checkpoint_copies (trial, node, step, name, fingerprint, saved_us, "
       "generation, fetched, folder) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {&delete_copy_, "DELETE FROM checkpoint_copies WHERE trial = ? AND node = ?"},
      {&set_token_,
       "INSERT OR REPLACE INTO tokens (id, hash, role, name, created_us, expires_us, removed_us) "
       "VALUES (?, ?, ?, ?, ?, ?, ?)"},
      {&set_replica_ids_,
       "INSERT OR REPLACE INTO meta (key, value) VALUES ('replica_ids_below', ?)"},
      {&set_meta_, "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"},
      {&set_value_,
       "INSERT OR REPLACE INTO trial_values (trial, step, value, progress, at_us, batch_size, "
       "promise, "
       "goodput) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
      {&select_study_text_, "SELECT json FROM studies WHERE id = ?"},
      {&rename_study_, "UPDATE studies SET name = ?, json = ? WHERE id = ?"},
      {&set_study_attribute_,
       "INSERT OR REPLACE INTO study_attributes (study, system, key, value) VALUES (?, ?, ?, ?)"},
      {&set_trial_attribute_,
       "INSERT OR REPLACE INTO trial_attributes (trial, system, key, value) VALUES (?, ?, ?, ?)"},
      {&insert_suggestion_,
       "INSERT INTO suggestions (study, number, name, distribution, kind) VALUES "
       "(?1, (SELECT ifnull(max(number), -1) + 1 FROM suggestions WHERE study = ?1), ?2, ?3, ?4)"},
      {&set_suggested_,
       "INSERT OR REPLACE INTO suggested (trial, position, suggestion, value) "
       "VALUES (?, ?, ?, ?)"},
      {&delete_other_values_, "DELETE FROM other_values WHERE trial = ?"},
      {&insert_other_value_, "INSERT INTO other_values (trial, number, value) VALUES (?, ?, ?)"},
      {&set_rank_value_,
       "INSERT OR REPLACE INTO rank_values (trial, step, rank, value) VALUES (?, ?, ?, ?)"},
      {&delete_rank_values_, "DELETE FROM rank_values WHERE trial = ?"},
      {&delete_rank_values_below_, "DELETE FROM rank_values WHERE trial = ? AND step < ?"},
      {&free_name_, kFreeNameSql},
      {&insert_deleted_, kMarkDeletedSql},
      {&select_last_span_,
       "SELECT number, from_us, to_us, slots FROM spans WHERE trial = ? "
       "ORDER BY number DESC LIMIT 1"},
      {&delete_span_, "DELETE FROM spans WHERE trial = ? AND number = ?"},
      {&insert_span_,
       "INSERT INTO spans (trial, number, from_us, to_us, slots) VALUES (?, ?, ?, ?, ?)"},
  };
  for (const auto& [statement, sql] : statements) {
    ESPALIER_ASSIGN_OR_RETURN(*statement, database.Prepare(sql));
  }
  return absl::OkStatus();
}

absl::Status ChangeWriter::Impl::operator()(const StudyDeleted& c) {
  // Its rows are many, and go later: see DeletedStudies.
  ESPALIER_RETURN_IF_ERROR(free_name_.Bind(c.id).Run());
  ESPALIER_RETURN_IF_ERROR(insert_deleted_.Bind(c.id).Run());
  ESPALIER_RETURN_IF_ERROR(set_meta_.Bind(kLastStudy, c.last_study).Run());
  return set_meta_.Bind(kLastTrial, c.last_trial).Run();
}

absl::Status ChangeWriter::Impl::operator()(const TrialTold& c) {
  ESPALIER_RETURN_IF_ERROR(ChangeTrial(c.id, c));
  if (Ended(c.state)) ESPALIER_RETURN_IF_ERROR(delete_rank_values_.Bind(c.id).Run());
  if (c.values.empty()) return absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(delete_other_values_.Bind(c.id).Run());
  for (std::size_t i = 1; i < c.values.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i) - 1;
    ESPALIER_RETURN_IF_ERROR(insert_other_value_.Bind(c.id, number, c.values[i]).Run());
  }
  return absl::OkStatus();
}

absl::Status ChangeWriter::Impl::operator()(const StudyCreated& c) {
  // Who made it has seen to it that it can be read back, or was not made from a text. Nothing else
  // may be acknowledged: this is the last moment to notice.
  std::string text = c.spec.wording.text;
  if (!IsWorded(c.spec)) {
    absl::StatusOr<StudySpec> kept = WithWording(c.spec, c.spec.name);
    if (!kept.ok()) {
      return absl::InternalError(absl::StrCat(
          "study \"", c.spec.name, "\" is not kept: ", std::string(kept.status().message())));
    }
    text = std::move(kept->wording.text);
  }
  return insert_study_
      .Bind(c.id, c.spec.name, text, c.at, c.at, c.spec.max_trials, c.spec.time_limit_s,
            ToString(StudyState::kRunning))
      .Run();
}

absl::Status ChangeWriter::Impl::operator()(const StudyRenamed& c) {
  ESPALIER_ASSIGN_OR_RETURN(const bool found, select_study_text_.Bind(c.id).Step());
  if (!found) return absl::InternalError(absl::StrCat("no study with id ", c.id.value));
  absl::StatusOr<StudySpec> spec = ParseStudy(select_study_text_.Text(0), c.name, "/");
  select_study_text_.Reset();
  if (!spec.ok()) return spec.status();
  spec->name = c.name;
  const std::string text = WriteStudy(*spec);
  return rename_study_.Bind(c.name, text, c.id).Run();
}

absl::Status ChangeWriter::Impl::operator()(const SlotsHeldChanged& c) {
  // Only the newest span can be open, so it is all that Apply needs to see.
  TunerState state;
  Trial& trial = state.trials[c.id];
  std::int64_t number = 0;
  ESPALIER_ASSIGN_OR_RETURN(const bool found, select_last_span_.Bind(c.id).Step());
  if (found) {
    number = select_last_span_.Integer(0);
    SlotSpan span{select_last_span_.Moment(1), select_last_span_.Moment(2), {}};
    absl::StatusOr<std::vector<Slot>> slots = SlotsFromText(select_last_span_.Text(3));
    select_last_span_.Reset();
    if (!slots.ok()) return slots.status();
    span.slots = *std::move(slots);
    trial.spans.push_back(std::move(span));
    ESPALIER_RETURN_IF_ERROR(delete_span_.Bind(c.id, number).Run());
  }
  state.Apply(c);
  for (const SlotSpan& span : trial.spans) {
    const std::string slots = SlotsToText(span.slots);
    ESPALIER_RETURN_IF_ERROR(insert_span_.Bind(c.id, number, span.from, span.to, slots).Run());
    ++number;
  }
  return absl::OkStatus();
}

absl::StatusOr<ChangeWriter> ChangeWriter::Make(Database& database) {
  auto impl = std::make_unique<Impl>();
  ESPALIER_RETURN_IF_ERROR(impl->Prepare(database));
  return ChangeWriter(std::move(impl));
}

ChangeWriter::ChangeWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChangeWriter::ChangeWriter(ChangeWriter&&) noexcept = default;
ChangeWriter::~ChangeWriter() = default;

absl::Status ChangeWriter::Write(const Change& change) { return std::visit(*impl_, change); }

}  // namespace espalier
