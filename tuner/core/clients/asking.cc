// Trials of ask-and-tell studies whose parameters the tuner draws for their clients.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "search_spaces/formats/optuna/distribution.h"
#include "tuner/core/clients/client_trials.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

namespace {

// By this name Optuna's enqueue_trial keeps what a WAITING trial is to run with.
constexpr char kFixedParameters[] = "fixed_params";

const SearchSpace::Dimension& DimensionOf(const SearchSpace& space, std::string_view name) {
  const std::optional<std::size_t> i = space.Find(name);
  ESPALIER_CHECK(i.has_value(), "what was drawn is of the space");
  return space.dimensions()[*i];
}

std::pair<Suggestion, double> ToSuggestion(const SearchSpace::Dimension& dimension,
                                           const ParameterValue& value) {
  std::string text = ToOptunaJson(dimension.distribution, value);
  auto parsed = ParseOptunaDistribution(text);
  ESPALIER_CHECK(parsed.ok(), "our own distributions can be read");
  return {{dimension.name, std::move(text), std::move(parsed->kind)},
          ToOptunaStored(dimension.distribution, value)};
}

}  // namespace

absl::Status ClientTrials::CheckRequestKey(StudyId study, const char* attribute,
                                           const std::string& key) {
  if (key.empty()) return absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(CheckKey(key));
  const TrialId known = request_keys_.Find(study, attribute, key);
  turn_.reply().content = TrialReply{known, bool{known}};
  return absl::OkStatus();
}

void ClientTrials::KeepRequestKey(TrialId id, const char* attribute, const std::string& key) {
  if (key.empty()) return;
  turn_.Emit(TrialAttributeSet{id, true, attribute, RequestKeyJson(key)});
  request_keys_.Take(turn_.TrialAt(id));
}

// The study that clients want a trial of; null if there is to be none, or there is one already.
const Study* ClientTrials::StudyToAsk(const std::string& name, const char* key_attribute,
                                      const std::string& key) {
  absl::Status& status = turn_.reply().status;
  const Study* study = turn_.state().FindStudy(name);
  if (study == nullptr) {
    status = NoStudy(name);
  } else if (!study->spec.by_clients()) {
    status = RunsOnThePool(*study);
  } else if (status = CheckRequestKey(study->id, key_attribute, key);
             status.ok() && !turn_.reply().existed()) {
    if (study->state == StudyState::kRunning) return study;
    status = NotRunning(*study);
  }
  return nullptr;
}

void ClientTrials::On(const AskTrial& event) {
  if (Answer(event)) return;
  const Study& study = *turn_.state().FindStudy(event.study);
  std::deque<WaitingAsk>& asks = asks_[study.id];
  if (asks.size() >= kMaxAsksOfStudy) {
    turn_.reply().status = absl::ResourceExhaustedError(
        absl::StrCat("study \"", study.spec.name, "\": ", kMaxAsksOfStudy,
                     " of its asks wait for its sampler \"", study.spec.sampler.name,
                     "\", the most that may; try again later"));
    return;
  }
  const std::int64_t number = ++asks_waited_;
  asks.push_back({number, event});
  turn_.reply().content = LaterReply{.ask = number};
}

// What is being drawn already is kept for who asks next.
void ClientTrials::On(const WithdrawAsk& event) {
  for (auto of_study = asks_.begin(); of_study != asks_.end(); ++of_study) {
    std::deque<WaitingAsk>& asks = of_study->second;
    const auto gone =
        std::ranges::find(asks, event.call, [](const WaitingAsk& ask) { return ask.event.call; });
    if (gone == asks.end()) continue;
    turn_.AnswerLate({.ask = gone->number},
                     {.status = absl::CancelledError(
                          "the client that asked for a trial closed its connection, or cancelled "
                          "its call, while it waited: it was given none")});
    asks.erase(gone);
    if (asks.empty()) asks_.erase(of_study);
    return;
  }
}

void ClientTrials::ServeAsks(StudyId study) {
  const auto waiting = asks_.find(study);
  if (waiting == asks_.end()) return;
  std::deque<WaitingAsk>& asks = waiting->second;
  const Reply own = std::exchange(turn_.reply(), {});
  for (; !asks.empty(); asks.pop_front()) {
    AskTrial& event = asks.front().event;
    const auto present = turn_.state().studies.find(study);
    if (present == turn_.state().studies.end()) {
      turn_.reply().status = NoStudy(event.study);  // nor is one that has its name by now
    } else {
      event.study = present->second.spec.name;
      if (!Answer(event)) break;
    }
    turn_.AnswerLate({.ask = asks.front().number}, std::exchange(turn_.reply(), {}));
  }
  turn_.reply() = own;
  if (asks.empty()) asks_.erase(waiting);
}

bool ClientTrials::Answer(const AskTrial& event) {
  const Study* study = StudyToAsk(event.study, kAskKey, event.request_key);
  if (study == nullptr) return true;
  absl::Status& status = turn_.reply().status;
  status = MayAsk(*study, event.fixed);
  if (!status.ok()) return true;
  TrialId id;
  if (event.fixed.empty()) id = FirstWaiting(*study);
  status = id ? HasTimeLeft(*study) : MayCreateTrial(*study);
  if (!status.ok()) return true;
  const Parameters fixed = id ? FixedOf(turn_.TrialAt(id)) : event.fixed;
  const std::optional<DrawnTrial> drawn = Draw(*study, id, fixed);
  if (!drawn) return false;
  if (!drawn->parameters) {
    plugins_.Of(*study).exhausted = true;
    status = absl::FailedPreconditionError(
        absl::StrCat("study \"", study->spec.name,
                     "\": every configuration of its search space has been tried"));
    EndIfAllTold(study->id);
    return true;
  }
  if (id) {
    turn_.Emit(TrialTold{.id = id,
                         .state = TrialState::kRunning,
                         .values = {},
                         .started = turn_.now(),
                         .ended = {}});
  } else {
    TrialTemplate running;
    running.state = TrialState::kRunning;
    running.started = turn_.now();
    id = CreateFrom(study->id, running);
  }
  AddDrawn(turn_.TrialAt(id), *drawn->parameters);
  draws_.EmitOf(id, *drawn);
  KeepRequestKey(id, kAskKey, event.request_key);
  HeardOf(id);
  turn_.reply().content = TrialReply{id};
  return true;
}

absl::Status ClientTrials::MayAsk(const Study& study, const Parameters& fixed) {
  const StudySpec& spec = study.spec;
  if (spec.space.dimensions().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("study \"", spec.name,
                     "\" has no search space: its clients draw parameters by themselves; a study "
                     "file's \"search_space\" gives it one"));
  }
  ESPALIER_RETURN_IF_ERROR(spec.space.ValidateSome(fixed));
  return MayRunOneMore(study);
}

absl::Status ClientTrials::MayRunOneMore(const Study& study) const {
  const StudySpec& spec = study.spec;
  if (spec.max_concurrent_trials == 0) return absl::OkStatus();
  const auto running = std::count_if(study.trials.begin(), study.trials.end(), [this](TrialId id) {
    return turn_.state().trials.at(id).state == TrialState::kRunning;
  });
  if (running < spec.max_concurrent_trials) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("study \"", spec.name, "\" runs as many trials as it may at a time (",
                   spec.max_concurrent_trials, "): tell the end of one first"));
}

absl::Status ClientTrials::MayCreateTrial(const Study& study) {
  const StudySpec& spec = study.spec;
  if (spec.max_trials > 0 && study.counted() >= spec.max_trials) {
    return absl::FailedPreconditionError(absl::StrCat(
        "study \"", spec.name, "\" has all its ", spec.max_trials, " trials: resume it with more"));
  }
  return HasTimeLeft(study);
}

absl::Status ClientTrials::MayStart(const Study& study) {
  if (study.state != StudyState::kRunning) return NotRunning(study);
  ESPALIER_RETURN_IF_ERROR(HasTimeLeft(study));
  return MayRunOneMore(study);
}

absl::Status ClientTrials::HasTimeLeft(const Study& study) {
  const StudySpec& spec = study.spec;
  if (spec.time_limit_s > 0 && ElapsedSeconds(study, turn_.now()) >= spec.time_limit_s) {
    const absl::Status status = absl::FailedPreconditionError(absl::StrCat(
        "study \"", spec.name, "\" has reached its time limit of ", spec.time_limit_s, " s"));
    trials_.ConcludeStudy(study.id,
                          absl::StrCat("time limit of ", spec.time_limit_s, " s reached"));
    return status;
  }
  return absl::OkStatus();
}

TrialId ClientTrials::FirstWaiting(const Study& study) const {
  const auto waiting = waiting_.find(study.id);
  if (waiting == waiting_.end() || waiting->second.empty()) return {};
  return *waiting->second.begin();
}

void ClientTrials::NoteWaiting(const Trial& trial) {
  if (trial.state == TrialState::kWaiting) {
    waiting_[trial.study].insert(trial.id);
  } else if (const auto of_study = waiting_.find(trial.study); of_study != waiting_.end()) {
    of_study->second.erase(trial.id);
  }
}

// What a WAITING trial is to run with: what it has, and what was enqueued for it.
Parameters ClientTrials::FixedOf(const Trial& trial) {
  const Study& study = turn_.StudyAt(trial.study);
  Parameters fixed;
  const SearchSpace& space = study.spec.space;
  // In the space's order: what a parameter depends on comes before it.
  const auto take = [&](const Parameters& parameters) {
    for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
      const auto& [name, distribution, condition] = space.dimensions()[i];
      const ParameterValue* value = Find(parameters, name);
      if (value == nullptr || Find(fixed, name) != nullptr) continue;
      const bool contained = Contains(distribution, *value);
      if (contained && space.IsActive(i, fixed)) {
        fixed.push_back({name, *value});
        continue;
      }
      turn_.Decide(
          trial, DecisionKind::kStudy, 0, 0,
          absl::StrCat("parameter \"", name, "\" was enqueued as ", ToDisplay(*value),
                       contained ? ", without the option that it belongs to: it is left out"
                                 : ", outside its search space: it is drawn"));
    }
  };
  take(*suggested_[study.id].Of(trial, study));
  const auto enqueued = trial.attributes.system.find(kFixedParameters);
  if (enqueued == trial.attributes.system.end()) return fixed;
  const absl::StatusOr<Parameters> parameters = ParametersFromJson(enqueued->second);
  if (parameters.ok()) {
    take(*parameters);
  } else {
    turn_.Decide(trial, DecisionKind::kStudy, 0, 0,
                 absl::StrCat("what was enqueued cannot be read, it is drawn: ",
                              parameters.status().message()));
  }
  return fixed;
}

// `taken` is the WAITING trial that the parameters are for, if it exists already.
std::optional<DrawnTrial> ClientTrials::Draw(const Study& study, TrialId taken,
                                             const Parameters& fixed) {
  const std::shared_ptr<const Sampler> sampler = plugins_.Of(study).sampler;
  static const Parameters kNone;
  SuggestedParameters& suggested = suggested_[study.id];
  const SamplerHistory::KnownTrials trials{
      .parameters_of =
          [&](const Trial& trial) {
            return trial.id == taken ? &kNone : suggested.Of(trial, study);
          },
      .held_by_pruner = [this](const Trial& trial) { return trials_.HeldByPruner(trial.id); }};
  const std::int64_t number = taken ? turn_.TrialAt(taken).number : std::ssize(study.trials);
  return draws_.Draw(study, sampler, {.number = number, .given = fixed}, trials);
}

// What the trial has stays as it is.
void ClientTrials::AddDrawn(const Trial& trial, const Parameters& parameters) {
  const Study& study = turn_.StudyAt(trial.study);
  const Parameters before = *suggested_[study.id].Of(trial, study);
  for (const Parameter& parameter : parameters) {
    if (Find(before, parameter.name) != nullptr) continue;
    const auto [suggestion, value] =
        ToSuggestion(DimensionOf(study.spec.space, parameter.name), parameter.value);
    Suggest(trial, suggestion, value);
  }
}

void ClientTrials::EnqueuePoints(const Study& study) {
  for (const Parameters& point : study.spec.points) {
    TrialTemplate waiting;
    waiting.attributes.system[kFixedParameters] = ToJson(point);
    CreateFrom(study.id, waiting);
  }
}

void ClientTrials::CreateWaiting(const std::string& name, const Parameters& fixed,
                                 const Attributes& attributes, const std::string& request_key) {
  const Study* study = StudyToAsk(name, kCreationKey, request_key);
  if (study == nullptr) return;
  absl::Status& status = turn_.reply().status;
  // Clients that draw by themselves know what they may give.
  if (!study->spec.space.dimensions().empty()) status = study->spec.space.ValidateSome(fixed);
  if (status.ok()) status = MayCreateTrial(*study);
  if (!status.ok()) return;
  TrialTemplate waiting;
  waiting.attributes = attributes;
  waiting.attributes.system[kFixedParameters] = ToJson(fixed);
  const TrialId id = CreateFrom(study->id, waiting);
  KeepRequestKey(id, kCreationKey, request_key);
  turn_.reply().content = TrialReply{id};
}

}  // namespace espalier
