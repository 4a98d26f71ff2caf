#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/protocol.h"
#include "base/shortened.h"
#include "tuner/api/convert.h"
#include "tuner/api/pool_warnings.h"
#include "tuner/api/study_notice.h"
#include "tuner/web/view/heading.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/shown_decision.h"
#include "tuner/web/view/slices.h"
#include "tuner/web/view/views.h"
#include "tuner/web/view/words.h"

namespace espalier::view {

namespace {

constexpr std::size_t kMaxAlerts = 20;
constexpr std::size_t kMaxAlertText = 300;  // bytes
constexpr std::size_t kStudyUnits = 60;     // of a slice, with its notices
constexpr std::size_t kNodeUnits = 8;

struct Best {
  TrialId id;
  std::int64_t number = 0;
  double value = 0;
};

// What is counted of a study, copied.
struct StudyRow {
  StudyId id;
  std::string name;
  StudyState state = StudyState::kRunning;
  StudyKind kind = StudyKind::kTuned;
  std::optional<std::string> metric;
  std::vector<Direction> directions;
  std::vector<std::pair<TrialState, std::int64_t>> trials;
  std::optional<std::int64_t> total;
  std::optional<Best> best;
  Time created, ended;
  double elapsed_s = 0;
  std::optional<double> remaining_s;
  std::int64_t slots = 0;
  double share = 1;
  double slot_seconds = 0;
  std::optional<double> spent;
  std::optional<ShownDecision> last_decision;
  std::vector<std::string> notices;
  std::optional<TrialTally::Kept> kept;  // none: its trials have nothing to keep to
};

struct SlotUse {
  int slot = 0;
  TrialId trial;
  std::optional<std::int64_t> number{};
  std::optional<std::int64_t> study{};
  std::optional<std::int64_t> pinned{};  // slots; none: its trial is not
};
struct NodeRow {
  NodeView node;
  std::vector<SlotUse> use;
};

struct Alert {
  Time at;
  const char* level = "warning";
  std::string text;
  std::optional<std::int64_t> study;
  std::optional<std::string> study_name{};
  std::optional<std::int64_t> trial{};
  std::optional<std::int64_t> number{};
};

struct Overview {
  Heading heading;
  Time now;
  int slots = 0;
  int held = 0;
  int awaited = 0;
  std::optional<std::string> policy;
  std::vector<NodeRow> nodes;
  std::vector<StudyRow> studies;
  std::vector<Alert> alerts;    // of the pool
  std::vector<Alert> failures;  // the newest ones, newest first
};

std::int64_t SlotsOf(const TunerState& state, const TrialTally& tally) {
  std::size_t slots = 0;
  for (const TrialId id : tally.holders()) slots += state.trials.at(id).spans.back().slots.size();
  return static_cast<std::int64_t>(slots);
}

std::optional<double> MoneyOf(const TunerState& state, const Study& study, Time now) {
  const double spent = SpentOn(state, study, now);
  return spent > 0 || study.spec.slot_price_per_hour > 0 ? std::optional(spent) : std::nullopt;
}

StudyRow RowOf(const Study& study, const View& view) {
  const TunerState& state = view.core.state();
  const TrialTally& tally = state.TallyOf(study);
  StudyRow row;
  row.id = study.id;
  row.name = study.spec.name;
  row.state = study.state;
  row.kind = study.spec.kind;
  if (study.spec.has_metric) row.metric = study.spec.metric;
  row.directions = study.spec.directions;
  for (const TrialState of : kTrialStates) row.trials.emplace_back(of, tally.count(of));
  if (study.spec.max_trials > 0) row.total = study.spec.max_trials + study.clones;
  if (const auto& best = tally.best()) {
    const TrialId id = study.trials.at(static_cast<std::size_t>(best->number));
    row.best = Best{id, best->number, best->value};
  }
  row.created = study.created;
  row.ended = study.ended;
  row.elapsed_s = ElapsedSeconds(study, view.now);
  const double remaining_s = RemainingSeconds(study, state, view.now);
  if (remaining_s >= 0 && study.ended == Time{}) row.remaining_s = remaining_s;
  row.slots = SlotsOf(state, tally);
  row.share = study.spec.share;
  row.slot_seconds = SlotSeconds(state, study, view.now);
  row.spent = MoneyOf(state, study, view.now);
  if (!study.decisions.empty()) {
    row.last_decision = DecisionAt(state, study, study.decisions.size() - 1);
  }
  row.notices = StudyNotices(study, view);
  const bool told = tally.kept() != TrialTally::Kept{};
  if (told || !study.spec.constraints.empty()) row.kept = tally.kept();
  return row;
}

// What is said of a node that is not as it should be.
void AddAlert(const NodeView& node, std::vector<Alert>& alerts) {
  if (!node.connected) {
    alerts.push_back({.at = {}, .text = absl::StrCat("node ", node.name, " is away"), .study = {}});
  } else if (node.draining) {
    alerts.push_back(
        {.at = {}, .text = absl::StrCat("node ", node.name, " is being drained"), .study = {}});
  }
}

void ReadPool(const View& view, Overview& overview) {
  const TunerState& state = view.core.state();
  overview.now = view.now;
  overview.slots = view.core.SlotsTotal();
  overview.held = view.core.SlotsHeld();
  overview.awaited = view.core.SlotsAwaited();
  if (const auto policy = view.core.PoolPolicy()) overview.policy = TextOf(*policy);
  const std::vector<NodeView> nodes = view.core.Nodes();
  const auto warn = [&overview](const std::string& text) {
    overview.alerts.push_back({.at = {}, .text = text, .study = {}});
  };
  for (const std::string& warning : PoolWarnings(nodes, view.hosts)) warn(warning);
  for (const std::string& trouble : view.engine_troubles) warn(trouble);
  for (const std::string& trouble : view.disk_troubles) warn(trouble);
  for (const NodeView& node : nodes) {
    AddAlert(node, overview.alerts);
    NodeRow& row = overview.nodes.emplace_back(NodeRow{node, {}});
    for (const ReplicaView& replica : node.replicas) {
      SlotUse use{.slot = replica.slot, .trial = replica.trial};
      if (const auto trial = state.trials.find(replica.trial); trial != state.trials.end()) {
        use.number = trial->second.number;
        use.study = trial->second.study.value;
        if (trial->second.pinned_slots > 0) use.pinned = trial->second.pinned_slots;
      }
      row.use.push_back(use);
    }
    std::sort(row.use.begin(), row.use.end(),
              [](const SlotUse& a, const SlotUse& b) { return a.slot < b.slot; });
  }
}

// Puts those of the study among the newest of all.
void AddFailures(const Study& study, const TunerState& state, std::vector<Alert>& newest) {
  const auto& failures = state.TallyOf(study).failures();
  for (auto failure = failures.rbegin(); failure != failures.rend(); ++failure) {
    const auto place = std::find_if(newest.begin(), newest.end(), [failure](const Alert& alert) {
      return alert.at < failure->at;
    });
    if (place == newest.end() && newest.size() >= kMaxAlerts) return;
    const Trial& trial = state.trials.at(failure->trial);
    newest.insert(place,
                  {.at = failure->at,
                   .level = "error",
                   .text = Shortened(trial.reason.empty() ? "failed" : trial.reason, kMaxAlertText),
                   .study = study.id.value,
                   .study_name = study.spec.name,
                   .trial = trial.id.value,
                   .number = trial.number});
    if (newest.size() > kMaxAlerts) newest.pop_back();
  }
}

// ---- as JSON

void Put(JsonText& json, const NodeRow& row) {
  const NodeView& node = row.node;
  json.Object([&] {
    json.Member("id", node.id.value);
    json.Member("name", node.name);
    json.Member("up", node.connected);
    json.Member("slots", node.slots);
    json.Member("held", row.use.size());
    json.Member("gpu_type", node.gpu_type);
    json.Member("spot", node.spot);
    json.Member("draining", node.draining);
    json.Member("drain_until", node.drain_ends);
    json.Key("price_per_hour");
    node.price_per_hour > 0 ? json.Value(node.price_per_hour) : json.Null();
    json.Key("warnings");
    json.Array(node.unusable, [&json](const auto& unusable) {
      json.Value(absl::StrCat("slot ", unusable.first, ": ", unusable.second));
    });
    json.Key("slot_use");
    json.Array(row.use, [&json](const SlotUse& use) {
      json.Object([&] {
        json.Member("slot", use.slot);
        json.Member("trial_id", use.trial.value);
        json.Member("trial", use.number);
        json.Member("study_id", use.study);
        json.Member("pinned", use.pinned);
      });
    });
  });
}

void Put(JsonText& json, const StudyRow& row) {
  json.Object([&] {
    json.Member("id", row.id.value);
    json.Member("name", row.name);
    json.Member("state", WordOf(row.state));
    json.Member("kind", WordOf(row.kind));
    json.Member("metric", row.metric);
    PutDirections(json, row.directions);
    json.Key("trials");
    json.Object([&] {
      for (const auto& [state, count] : row.trials) json.Member(WordOf(state), count);
    });
    json.Member("total", row.total);
    json.Key("best");
    if (row.best) {
      json.Object([&] {
        json.Member("trial_id", row.best->id.value);
        json.Member("trial", row.best->number);
        json.Member("value", row.best->value);
      });
    } else {
      json.Null();
    }
    json.Member("created_at", row.created);
    json.Member("ended_at", row.ended);
    json.Member("elapsed_s", row.elapsed_s);
    json.Member("remaining_s", row.remaining_s);
    json.Member("slots", row.slots);
    json.Member("share", row.share);
    json.Member("slot_seconds", row.slot_seconds);
    json.Member("spent", row.spent);
    json.Key("last_decision");
    if (row.last_decision) {
      Put(json, *row.last_decision);
    } else {
      json.Null();
    }
    json.Values("notices", row.notices);
    json.Key("kept");
    if (row.kept) {
      json.Object([&] {
        json.Member("keep", row.kept->keep);
        json.Member("breaks", row.kept->breaks);
      });
    } else {
      json.Null();
    }
  });
}

void Put(JsonText& json, const Alert& alert) {
  json.Object([&] {
    json.Member("at", alert.at);
    json.Member("level", alert.level);
    json.Member("text", alert.text);
    json.Member("study_id", alert.study);
    json.Member("study", alert.study_name);
    json.Member("trial_id", alert.trial);
    json.Member("trial", alert.number);
  });
}

// What the page may show buttons for.
std::string_view RoleWord(Role role) {
  if (role == Role::kAdminister) return "administer";
  return role == Role::kSubmit ? "submit" : "view";
}

std::string ToJson(const Overview& overview, Role role) {
  JsonText json;
  json.Object([&] {
    PutHeading(json, overview.heading);
    json.Member("now", overview.now);
    json.Key("service");
    json.Object([&] {
      json.Member("version", Release());
      json.Key("http_base");
      json.Null();
    });
    json.Member("role", RoleWord(role));
    json.Key("pool");
    json.Object([&] {
      json.Member("slots", overview.slots);
      json.Member("held", overview.held);
      json.Member("policy", overview.policy);
      json.Member("waiting_slots", overview.awaited);
      json.Key("nodes");
      json.Array(overview.nodes, [&json](const NodeRow& node) { Put(json, node); });
    });
    json.Key("studies");
    json.Array(overview.studies, [&json](const StudyRow& study) { Put(json, study); });
    json.Key("alerts");
    json.Array([&] {
      for (const Alert& alert : overview.alerts) Put(json, alert);
      for (const Alert& alert : overview.failures) Put(json, alert);
    });
  });
  return json.Take();
}

// As it is while nothing happens: without what grows by itself.
Overview WithoutTime(Overview overview) {
  overview.now = {};
  for (StudyRow& study : overview.studies) {
    study.elapsed_s = 0;
    study.remaining_s.reset();
    study.slot_seconds = 0;
    study.spent.reset();
  }
  return overview;
}

absl::StatusOr<Overview> ReadOverview(const Source& source) {
  Overview overview;
  ESPALIER_RETURN_IF_ERROR(source.tuner.Read([&](const View& view) {
    overview.heading = HeadingOf(source);
    ReadPool(view, overview);
  }));
  StudyId next;
  ESPALIER_RETURN_IF_ERROR(ReadInSlices(source.tuner, [&](const View& view, Slice& slice) {
    const TunerState& state = view.core.state();
    auto study = state.studies.lower_bound(next);
    for (; study != state.studies.end() && slice.HasRoom(); ++study) {
      overview.studies.push_back(RowOf(study->second, view));
      AddFailures(study->second, state, overview.failures);
      slice.Spend(kStudyUnits + kNodeUnits * overview.nodes.size());
    }
    if (study == state.studies.end()) return true;
    next = study->first;
    return false;
  }));
  return overview;
}

}  // namespace

absl::StatusOr<std::string> OverviewJson(const Source& source) {
  ESPALIER_ASSIGN_OR_RETURN(const Overview overview, ReadOverview(source));
  return ToJson(overview, source.role);
}

absl::StatusOr<OverviewTexts> TextsOfOverview(const Source& source) {
  ESPALIER_ASSIGN_OR_RETURN(const Overview overview, ReadOverview(source));
  return OverviewTexts{ToJson(overview, source.role), ToJson(WithoutTime(overview), source.role)};
}

}  // namespace espalier::view
