#include "tests/storage/change_source.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

namespace {

constexpr std::size_t kLongOutput = 4096;
constexpr std::size_t kMostStudies = 5;
constexpr std::size_t kMostTrials = 40;

template <typename Map>
const typename Map::mapped_type* AnyOf(const Map& map, Random& random) {
  if (map.empty()) return nullptr;
  return &std::next(map.begin(), static_cast<std::ptrdiff_t>(random.Below(map.size())))->second;
}

}  // namespace

StudySpec SpecForTests(const std::string& name) {
  const std::string json = R"({
    "name": ")" + name + R"(",
    "command": ["python3", "it's \"quoted\".py", "", "--länge=3 ✂"],
    "metric": {"name": "genauigkeit ≥", "direction": "maximize"},
    "search_space": {"lr": {"_type": "loguniform", "_value": [1e-05, 0.1]},
                     "rule": {"_type": "choice", "_value": ["linear", "o'clock", "√", 16, 0.5]}},
    "sampler": {"name": "tpe", "startup_trials": 6, "gamma": 0.1},
    "pruner": "median", "policy": {"name": "fixed"},
    "trials": 12, "time_limit_s": 0.1, "target": 0.987654321,
    "max_concurrent_trials": 3, "max_step": 5, "slots": [2, 16], "slots_per_node": 8, "resize": "restart",
    "batch_mode": "adaptive", "seed": 18446744073709551615, "max_consecutive_failures": 2,
    "max_restarts": 0, "stragglers": "ignore", "stop_grace_s": 1.5, "start_timeout_s": 900, "stall_timeout_s": 45.5, "share": 2.5, "env": {"A": "b=c", "N": 0.1, "EMPTY": ""},
    "directory": "runs/../somewhere else"})";
  absl::StatusOr<StudySpec> spec = ParseStudy(json, "test.json", "/srv/studies");
  ESPALIER_CHECK(spec.ok(), std::string(spec.status().message()));
  return *std::move(spec);
}

Change ChangeSource::Next() {
  while (true) {
    const std::size_t kind = random_.Below(kKinds);
    std::optional<Change> change = MakeKind(kind, std::make_index_sequence<kKinds>{});
    if (!change) continue;
    ++counts_[change->index()];
    state_.Apply(*change);
    return *std::move(change);
  }
}

// ---- Values ----------------------------------------------------------------------------------

const Study* ChangeSource::AnyStudy() { return AnyOf(state_.studies, random_); }
const Trial* ChangeSource::AnyTrial() { return AnyOf(state_.trials, random_); }

double ChangeSource::AnyDouble() {
  using Limits = std::numeric_limits<double>;
  const double hard[] = {Limits::quiet_NaN(),
                         -Limits::quiet_NaN(),
                         Limits::infinity(),
                         -Limits::infinity(),
                         -0.0,
                         0.0,
                         Limits::denorm_min(),
                         Limits::max(),
                         3.0,
                         -1e15,
                         9007199254740993.0};
  switch (random_.Below(3)) {
    case 0:
      return hard[random_.Below(std::size(hard))];
    case 1:
      return std::bit_cast<double>(random_.Next());
    default:
      return random_.Normal();
  }
}

float ChangeSource::AnyFigure() { return KeptFigure(AnyDouble()); }

NodeTerms ChangeSource::AnyTerms() {
  return {.since = LaterTime(),
          .slots = 1 + Small(8),
          .gpu_type = AnyText(),
          .spot = Small(2) > 0,
          .price_per_hour = static_cast<double>(Small(1000)) / 7};
}

std::int64_t ChangeSource::AnyInteger() {
  switch (random_.Below(4)) {
    case 0:
      return std::numeric_limits<std::int64_t>::max();
    case 1:
      return std::numeric_limits<std::int64_t>::min();
    default:
      return static_cast<std::int64_t>(random_.Below(1000)) - 500;
  }
}

std::string ChangeSource::ReadableText() {
  const char* const texts[] = {"",
                               "plain",
                               "it's \"quoted\"; DROP TABLE trials; --",
                               "größer ≥ 木 🌳",
                               "line\nline\ttab\\",
                               "%s ? :name @x $1 ?1"};
  return texts[random_.Below(std::size(texts))];
}

std::string ChangeSource::AnyText() {
  switch (random_.Below(4)) {
    case 0: {  // the output of a program may be any bytes
      std::string bytes(random_.Below(2) == 0 ? kLongOutput : 9, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random_.Below(256));
      return bytes;
    }
    case 1:
      return std::string("a\0b\0", 4);
    default:
      return ReadableText();
  }
}

Parameters ChangeSource::AnyParameters() {
  Parameters parameters = {{"flag", random_.Below(2) == 0},
                           {"integer", AnyInteger()},
                           {"whole", 5.0},
                           {"te\"xt ✂", ReadableText()}};
  const double number = AnyDouble();
  if (std::isfinite(number)) parameters.push_back({"number", number});
  return parameters;
}

Time ChangeSource::LaterTime() {
  // Often the same moment again; sometimes a little back, as after a restart with a set clock.
  const auto step = static_cast<std::int64_t>(random_.Below(1'000'000'000));
  if (random_.Below(3) != 0) now_.us += random_.Below(10) == 0 ? -step / 10 : step;
  return now_;
}

// ---- Changes ---------------------------------------------------------------------------------

std::optional<Change> ChangeSource::Make(Draw<StudyCreated>) {
  if (state_.studies.size() >= kMostStudies) return std::nullopt;
  // Ids may leave gaps.
  const std::int64_t above = state_.last_study.value;
  const StudyId id(above + 1 + Small(3));
  return StudyCreated{id, SpecForTests("study-" + std::to_string(id.value)), LaterTime()};
}

std::optional<Change> ChangeSource::Make(Draw<StudyStateChanged>) {
  const Study* study = AnyStudy();
  if (study == nullptr) return std::nullopt;
  const auto state = static_cast<StudyState>(Small(4));
  if (state == study->state) return std::nullopt;
  return StudyStateChanged{study->id, state, AnyText(), LaterTime()};
}

std::optional<Change> ChangeSource::Make(Draw<StudyLimitsChanged>) {
  const Study* study = AnyStudy();
  if (study == nullptr) return std::nullopt;
  return StudyLimitsChanged{study->id, AnyInteger(), AnyDouble()};
}

std::optional<Change> ChangeSource::Make(Draw<StudyClockSet>) {
  const Study* study = AnyStudy();
  if (study == nullptr) return std::nullopt;
  return StudyClockSet{study->id, AnyDouble(), LaterTime()};
}

std::optional<Change> ChangeSource::Make(Draw<StudyDeleted>) {
  const Study* study = AnyStudy();
  // Seldom, so that studies become old.
  if (study == nullptr || Small(3) > 0) return std::nullopt;
  return StudyDeleted{study->id, state_.last_study, state_.last_trial};
}

std::optional<Change> ChangeSource::Make(Draw<StudyRenamed>) {
  const Study* study = AnyStudy();
  if (study == nullptr) return std::nullopt;
  return StudyRenamed{
      study->id, "renamed-" + std::to_string(study->id.value) + "." + std::to_string(Small(9))};
}

std::optional<Change> ChangeSource::Make(Draw<StudyAttributeSet>) {
  const Study* study = AnyStudy();
  if (study == nullptr) return std::nullopt;
  return StudyAttributeSet{study->id, Small(2) > 0, ReadableText(), AnyText()};
}

std::optional<Change> ChangeSource::Make(Draw<SuggestionAdded>) {
  const Study* study = AnyStudy();
  if (study == nullptr) return std::nullopt;
  return SuggestionAdded{
      study->id, {ReadableText(), std::to_string(study->suggestions.size()), ReadableText()}};
}

std::optional<Change> ChangeSource::Make(Draw<TrialTold>) {
  const Trial* trial = AnyTrial();
  const auto source = Small(2) > 0 ? StateSource::kClient : StateSource::kImport;
  if (trial == nullptr || !MayFollow(trial->state, TrialState::kFail, source)) return std::nullopt;
  auto state = static_cast<TrialState>(Small(6));
  if (!MayFollow(trial->state, state, source)) state = TrialState::kRunning;
  std::vector<double> values;
  for (int i = Small(4); i > 0; --i) values.push_back(AnyDouble());
  return TrialTold{trial->id,
                   state,
                   std::move(values),
                   Small(2) > 0 ? LaterTime() : Time{},
                   Small(2) > 0 ? LaterTime() : Time{},
                   source};
}

std::optional<Change> ChangeSource::Make(Draw<ParameterSuggested>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  const int suggestions = static_cast<int>(state_.studies.at(trial->study).suggestions.size());
  if (suggestions == 0) return std::nullopt;
  const int places = static_cast<int>(trial->suggested.size()) + 1;
  return ParameterSuggested{trial->id, Small(places), {Small(suggestions), AnyDouble()}};
}

std::optional<Change> ChangeSource::Make(Draw<TrialAttributeSet>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  static const char* const kConstraints[] = {"0.5", "-1", "NaN", "[1, -2, null]"};
  if (Small(4) == 0) {
    return TrialAttributeSet{trial->id, true, Small(2) == 0 ? "constraints" : "constraints:a",
                             kConstraints[Small(4)]};
  }
  return TrialAttributeSet{trial->id, Small(2) > 0, ReadableText(), AnyText()};
}

std::optional<Change> ChangeSource::Make(Draw<TrialHeld>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  return TrialHeld{trial->id, Small(2) > 0};
}

std::optional<Change> ChangeSource::Make(Draw<TrialEnvironmentSet>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  std::map<std::string, std::string> variables;
  for (int i = Small(3); i > 0; --i) variables[ReadableText()] = ReadableText();
  return TrialEnvironmentSet{trial->id, {variables.begin(), variables.end()}};
}

std::optional<Change> ChangeSource::Make(Draw<FinalValueReported>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  return FinalValueReported{trial->id, AnyDouble()};
}

std::optional<Change> ChangeSource::Make(Draw<TrialCreated>) {
  const Study* study = AnyStudy();
  if (study == nullptr || state_.trials.size() >= kMostTrials) return std::nullopt;
  const std::int64_t above = state_.last_trial.value;
  return TrialCreated{TrialId(above + 1 + Small(3)), study->id, std::ssize(study->trials),
                      AnyParameters(), LaterTime()};
}

std::optional<Change> ChangeSource::Make(Draw<TrialStateChanged>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  const auto state = static_cast<TrialState>(Small(6));
  if (!MayFollow(trial->state, state, StateSource::kPool)) return std::nullopt;
  std::optional<double> value;
  if (random_.Below(2) == 0) value = AnyDouble();
  return TrialStateChanged{trial->id, state, LaterTime(), AnyText(), value, AnyText()};
}

std::optional<Change> ChangeSource::Make(Draw<ValueReported>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  const std::int64_t step = Small(60) - 10;
  const bool known = std::any_of(trial->values.begin(), trial->values.end(),
                                 [&](const IntermediateValue& v) { return v.step == step; });
  ValueReported change{
      trial->id,
      {step, AnyDouble(), AnyDouble(), LaterTime(), AnyInteger(), AnyFigure(), AnyFigure()},
      {},
      known || Small(2) > 0};
  for (int i = known ? 0 : Small(3); i > 0; --i) change.extra[AnyText()] = AnyDouble();
  return change;
}

std::optional<Change> ChangeSource::Make(Draw<RankValueTold>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  return RankValueTold{trial->id, Small(60) - 10, Small(9), AnyDouble()};
}

std::optional<Change> ChangeSource::Make(Draw<RankValuesForgotten>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  return RankValuesForgotten{trial->id, Small(60) - 10};
}

std::optional<Change> ChangeSource::Make(Draw<VerdictAgreed>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  return VerdictAgreed{trial->id,
                       {.go_on = AnyInteger(), .stop = AnyInteger()},
                       {.go_on = AnyInteger(), .stop = AnyInteger()}};
}

std::optional<Change> ChangeSource::Make(Draw<GenerationAdvanced>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  return GenerationAdvanced{trial->id, trial->generation + 1 + Small(3)};
}

std::optional<Change> ChangeSource::Make(Draw<SlotsHeldChanged>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  std::vector<Slot> slots;
  for (int i = Small(4); i > 0; --i) slots.push_back({NodeId(1 + Small(3)), Small(8)});
  return SlotsHeldChanged{trial->id, LaterTime(), std::move(slots)};
}

std::optional<Change> ChangeSource::Make(Draw<ResizeMeasured>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  return ResizeMeasured{trial->id,
                        {LaterTime(), AnyInteger(), Small(9), Small(9), AnyDouble(),
                         random_.Below(2) == 0, AnyDouble(), AnyDouble()}};
}

std::optional<Change> ChangeSource::Make(Draw<FiguresRecorded>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  FiguresRecorded change{trial->id, {}};
  for (const FigureRow& row : kFigureRows) change.figures[row.figure] = AnyDouble();
  return change;
}

std::optional<Change> ChangeSource::Make(Draw<CheckpointRecorded>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  return CheckpointRecorded{trial->id, AnyText(), AnyLabel()};
}

std::optional<Change> ChangeSource::Make(Draw<CheckpointCopySet>) {
  const Trial* trial = AnyTrial();
  const NodeId* node = AnyNode();
  if (trial == nullptr || node == nullptr) return std::nullopt;
  return CheckpointCopySet{trial->id, {*node, AnyLabel(), Small(2) == 0, AnyText()}};
}

std::optional<Change> ChangeSource::Make(Draw<CheckpointCopyGone>) {
  const Trial* trial = AnyTrial();
  const NodeId* node = AnyNode();
  if (trial == nullptr || node == nullptr) return std::nullopt;
  return CheckpointCopyGone{trial->id, *node};
}

const NodeId* ChangeSource::AnyNode() {
  if (state_.nodes.empty()) return nullptr;
  return &std::next(state_.nodes.begin(), Small(static_cast<int>(state_.nodes.size())))->first;
}

CheckpointLabel ChangeSource::AnyLabel() {
  return {AnyInteger(), AnyText(), AnyText(), LaterTime(), AnyInteger()};
}

std::optional<Change> ChangeSource::Make(Draw<TrialDrawn>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  TrialDraw draw;
  draw.known = 9 + Small(1000);
  if (Small(2) == 0) draw.running = {{1, 3}, {5, 5}};
  if (Small(2) == 0) draw.held_back = {{7, Small(100)}};
  if (Small(2) == 0) draw.given = {0, Small(3) + 1};
  return TrialDrawn{trial->id, draw};
}

std::optional<Change> ChangeSource::Make(Draw<TrialCloned>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  Lineage lineage{.parent = Small(1000), .founder = Small(1000)};
  if (Small(2) == 0) {
    lineage.step = Small(1000);
    lineage.fingerprint = AnyText();
  }
  return TrialCloned{trial->id, lineage};
}

std::optional<Change> ChangeSource::Make(Draw<TrialPinned>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  return TrialPinned{trial->id, Small(9)};
}

std::optional<Change> ChangeSource::Make(Draw<TrialRestarted>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  return TrialRestarted{trial->id, trial->restarts + 1};
}

std::optional<Change> ChangeSource::Make(Draw<JoinsFailed>) {
  const Trial* trial = AnyTrial();
  if (trial == nullptr) return std::nullopt;
  return JoinsFailed{trial->id, {Small(9), Small(9), AnyText(), LaterTime(), AnyInteger()}};
}

std::optional<Change> ChangeSource::Make(Draw<DecisionMade>) {
  const Study* study = AnyStudy();
  if (study == nullptr) return std::nullopt;
  constexpr int kDecisionKinds = static_cast<int>(DecisionKind::kStudy) + 1;
  DecisionMade made{study->id,
                    {LaterTime(), AnyInteger(), static_cast<DecisionKind>(Small(kDecisionKinds)),
                     Small(9), Small(9), AnyText()}};
  if (Small(2) == 0) return made;
  AllocationFigures& figures = made.decision.figures.emplace();
  for (float* figure : {&figures.promise, &figures.speedup_before, &figures.speedup_after,
                        &figures.gain, &figures.resize_cost_s}) {
    *figure = AnyFigure();
  }
  for (int i = Small(3); i > 0; --i) {
    figures.from.push_back({TrialId(AnyInteger()), Small(9), AnyFigure()});
  }
  return made;
}

std::optional<Change> ChangeSource::Make(Draw<NodeRegistered>) {
  const std::int64_t above = state_.nodes.empty() ? 0 : state_.nodes.rbegin()->first.value;
  return NodeRegistered{NodeId(above + 1), AnyText()};
}

std::optional<Change> ChangeSource::Make(Draw<NodeTermsTold>) {
  const NodeId* node = AnyNode();
  if (node == nullptr) return std::nullopt;
  return NodeTermsTold{*node, AnyTerms()};
}

std::optional<Change> ChangeSource::Make(Draw<NodeSeen>) {
  const NodeId* node = AnyNode();
  if (node == nullptr) return std::nullopt;
  return NodeSeen{.id = *node, .up = Small(2) > 0, .terms = AnyTerms(), .why = AnyText()};
}

std::optional<Change> ChangeSource::Make(Draw<NodeDrained>) {
  if (state_.nodes.empty()) return std::nullopt;
  const NodeId any =
      std::next(state_.nodes.begin(), Small(static_cast<int>(state_.nodes.size())))->first;
  return NodeDrained{any, Small(3) > 0, Small(2) > 0 ? LaterTime() : Time{}};
}

std::optional<Change> ChangeSource::Make(Draw<PoolPolicySet>) {
  PluginSpec policy{AnyText(), {}};
  for (int i = Small(3); i > 0; --i)
    policy.options["option" + std::to_string(i)] = Small(100) / 7.0;
  return PoolPolicySet{std::move(policy)};
}

std::optional<Change> ChangeSource::Make(Draw<TokenKept>) {
  return TokenKept{{std::to_string(Small(5)), AnyText(), AnyText(), AnyText(), LaterTime(),
                    Small(2) > 0 ? LaterTime() : Time{}, Small(2) > 0 ? LaterTime() : Time{}}};
}

std::optional<Change> ChangeSource::Make(Draw<ReplicaIdsReserved>) {
  return ReplicaIdsReserved{state_.replica_ids_below + Small(100)};
}

}  // namespace espalier
