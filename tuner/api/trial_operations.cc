#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/guarded.h"
#include "base/json/json_depth.h"
#include "search_spaces/formats/optuna/constraints.h"
#include "search_spaces/formats/optuna/distribution.h"
#include "tuner/api/convert.h"
#include "tuner/api/operations.h"
#include "tuner/core/state/private_attributes.h"
#include "tuner/core/state/refusals.h"

namespace espalier::api {

namespace {

// Runs `look` on the trial; its value, or the error that there is no such trial.
template <typename Look>
auto ReadTrial(Tuner& tuner, std::int64_t id, Look look)
    -> absl::StatusOr<decltype(look(std::declval<const Trial&>(), std::declval<const View&>()))> {
  std::optional<decltype(look(std::declval<const Trial&>(), std::declval<const View&>()))> seen;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    const auto& trials = view.core.state().trials;
    if (const auto it = trials.find(TrialId(id)); it != trials.end()) seen = look(it->second, view);
  }));
  if (!seen) return NoTrial(TrialId(id));
  return *std::move(seen);
}

// Has the event handled, and runs `look` on the trial; `reply` is the core's.
template <typename Look>
auto PostForTrial(Tuner& tuner, Event&& event, std::optional<TrialId> id, Reply& reply, Look look)
    -> absl::StatusOr<decltype(look(std::declval<const Trial&>(), std::declval<const View&>()))> {
  std::optional<decltype(look(std::declval<const Trial&>(), std::declval<const View&>()))> seen;
  reply = tuner.PostAndRead(std::move(event), [&](const Reply& given, const View& view) {
    if (!id) id = given.trial();
    const auto& trials = view.core.state().trials;
    if (const auto it = trials.find(*id); it != trials.end()) seen = look(it->second, view);
  });
  if (!reply.status.ok()) return reply.status;
  if (!seen) return NoTrial(*id);
  return *std::move(seen);
}

// The trial is the one that the reply names.
absl::StatusOr<v1::TrialRecord> PostForTrial(Tuner& tuner, Event event) {
  Reply reply;
  return PostForTrial(tuner, std::move(event), std::nullopt, reply,
                      [](const Trial& trial, const View& view) { return ToRecord(trial, view); });
}

v1::Verdict ToProto(const PruneVerdict& verdict) {
  v1::Verdict out;
  out.set_prune(verdict.action == PruneAction::kPrune);
  out.set_reason(verdict.reason);
  return out;
}

v1::Verdict VerdictOn(const Trial& trial, const View& view) {
  return ToProto(view.core.Verdict(trial.id));
}

absl::StatusOr<Parameters> FixedParameters(const std::string& json) {
  if (json.empty() || json == "null") return Parameters{};
  return ParametersFromJson(json);
}

// Whether the study's trials have whatever parameters they are enqueued with.
bool TakesAnyParameters(Tuner& tuner, const std::string& name) {
  bool takes_any = false;
  const absl::Status read = tuner.Read([&](const View& view) {
    const Study* study = view.core.state().FindStudy(name);
    takes_any = study != nullptr && study->spec.queued() && study->spec.space.dimensions().empty();
  });
  return read.ok() && takes_any;
}

// Attributes over gRPC are texts that may be anything.
template <typename Map>
absl::StatusOr<std::map<std::string, std::string>> ReadAttributes(const Map& from,
                                                                  bool system = false) {
  std::map<std::string, std::string> attributes;
  for (const auto& [key, value] : from) {
    if (system && IsPrivateAttribute(key)) return PrivateAttribute(key);
    absl::Status status = CheckJsonDepth(value);
    if (status.ok()) status = CheckPythonJson(value);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute \"", key, "\": ", std::string(status.message())));
    }
    attributes.emplace(key, value);
  }
  return attributes;
}

// System attributes that parts of the service keep of a trial. Its own program, which may set all
// others, could take the place of another trial by them.
constexpr std::string_view kKeptByTheService[] = {"nni:", "espalier:"};

absl::Status CheckSettable(const std::map<std::string, std::string>& system) {
  for (const auto& [key, value] : system) {
    for (const std::string_view kept : kKeptByTheService) {
      if (!std::string_view(key).starts_with(kept)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("system attribute \"", key, "\": those that begin with \"",
                       std::string(kept), "\" are kept by the service and cannot be set"));
    }
  }
  return absl::OkStatus();
}

// Absent: the program has no other ranks.
template <typename Request>
absl::StatusOr<ProgramRank> RankOf(const Request& request) {
  if (!request.has_rank() && !request.has_ranks()) return ProgramRank{};
  if (!request.has_rank() || !request.has_ranks()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"rank\" and \"ranks\" are given together, such as {\"rank\": 0, "
                     "\"ranks\": 2}; got \"",
                     request.has_rank() ? "rank" : "ranks", "\" alone"));
  }
  return ProgramRank{request.rank(), request.ranks()};
}

absl::StatusOr<TellEnd> ReadEnd(const v1::TellRequest& request) {
  TellEnd end{TrialId(request.trial_id()), TrialState::kComplete, {}};
  if (request.state() == v1::TRIAL_PRUNED) {
    end.state = TrialState::kPruned;
  } else if (request.state() == v1::TRIAL_FAIL) {
    end.state = TrialState::kFail;
  } else if (request.state() != v1::TRIAL_COMPLETE) {
    return absl::InvalidArgumentError(
        absl::StrCat("state: a trial ends as COMPLETE, PRUNED or FAIL, got ",
                     v1::TrialState_Name(request.state())));
  }
  if (request.has_step() || request.final()) {
    return absl::InvalidArgumentError(
        "state: tells the end, and \"step\" and \"final\" are for values on the way; give one of "
        "the two");
  }
  if (request.has_value() && request.values_size() > 0) {
    return absl::InvalidArgumentError("give \"value\" or \"values\", not both");
  }
  end.values.assign(request.values().begin(), request.values().end());
  if (request.has_value()) end.values.push_back(request.value());
  return end;
}

absl::StatusOr<v1::Verdict> AskWhetherToSave(Tuner& tuner, const v1::ReportRequest& request) {
  if (request.has_value() || !request.has_step()) {
    return absl::InvalidArgumentError(
        "\"should_save\" asks at a step, without a value, such as {\"step\": 1, \"should_save\": "
        "true}");
  }
  const TrialId trial(request.trial_id());
  Reply reply;
  ESPALIER_ASSIGN_OR_RETURN(
      v1::Verdict verdict,
      PostForTrial(tuner, AskVerdict{trial, request.step(), Question::kSave}, trial, reply,
                   [](const Trial&, const View&) { return v1::Verdict(); }));
  verdict.set_save(reply.should_stop());
  return verdict;
}

}  // namespace

absl::StatusOr<v1::TrialRecord> Ask(Tuner& tuner, const v1::AskRequest& request) {
  ESPALIER_ASSIGN_OR_RETURN(Parameters fixed, FixedParameters(request.parameters()));
  return PostForTrial(tuner, AskTrial{request.study(), std::move(fixed), request.request_key()});
}

TakeBack StartAsk(Tuner& tuner, const v1::AskRequest& request,
                  std::function<void(absl::StatusOr<v1::TrialRecord>)> done) {
  static std::atomic<std::int64_t> calls = 0;
  absl::StatusOr<Parameters> fixed = FixedParameters(request.parameters());
  if (!fixed.ok()) {
    done(fixed.status());
    return nullptr;
  }
  const std::int64_t call = ++calls;
  AskTrial event{request.study(), *std::move(fixed), request.request_key(), call};
  tuner.PostThen(std::move(event), [&tuner, done = std::move(done)](const Reply& reply) {
    if (!reply.status.ok()) return done(reply.status);
    tuner.ReadThen([id = reply.trial(), done](const View* view) {
      if (view == nullptr) return done(ShuttingDown());
      absl::StatusOr<v1::TrialRecord> record = NoTrial(id);
      const absl::Status told = Guarded([] { return std::string("the trial of an ask"); },
                                        [&] {
                                          const auto& trials = view->core.state().trials;
                                          if (const auto it = trials.find(id); it != trials.end())
                                            record = ToRecord(it->second, *view);
                                        });
      done(told.ok() ? std::move(record) : told);
    });
  });
  return [&tuner, call] { tuner.PostThen(WithdrawAsk{call}, [](const Reply&) {}); };
}

absl::StatusOr<v1::TrialRecord> Enqueue(Tuner& tuner, const v1::EnqueueRequest& request) {
  EnqueueTrial event{request.study(), {}, {}, request.request_key()};
  absl::StatusOr<Parameters> fixed = FixedParameters(request.parameters());
  if (!fixed.ok() && TakesAnyParameters(tuner, request.study())) {
    // The program reads null and lists as they are; as parameters they are shown as texts.
    fixed = ParametersOrTextsFromJson(request.parameters());
    event.system_attributes.emplace(kTrialParameters, request.parameters());
  }
  ESPALIER_ASSIGN_OR_RETURN(event.fixed, std::move(fixed));
  ESPALIER_ASSIGN_OR_RETURN(event.user_attributes, ReadAttributes(request.user_attributes()));
  return PostForTrial(tuner, std::move(event));
}

absl::StatusOr<v1::TrialRecord> CloneTrial(Tuner& tuner, const v1::CloneTrialRequest& request) {
  ESPALIER_ASSIGN_OR_RETURN(Parameters set, FixedParameters(request.parameters()));
  return PostForTrial(tuner, espalier::CloneTrial{TrialId(request.trial_id()), std::move(set),
                                                  request.request_key()});
}

absl::StatusOr<v1::Verdict> Report(Tuner& tuner, const v1::ReportRequest& request) {
  if (request.should_save()) return AskWhetherToSave(tuner, request);
  const TrialId trial(request.trial_id());
  ESPALIER_ASSIGN_OR_RETURN(const ProgramRank from, RankOf(request));
  // What its ranks are told at a step, they are told alike.
  const bool agreed = request.has_step() && (!request.has_value() || from.of_several());
  Event event;
  if (request.has_value()) {
    ReportValue report{.trial = trial, .step = {}, .value = request.value(), .from = from};
    if (request.has_step()) report.step = request.step();
    report.extra.insert(request.extra().begin(), request.extra().end());
    event = report;
  } else if (request.has_step()) {
    event = AskVerdict{trial, request.step()};
  } else {
    return absl::InvalidArgumentError("\"value\" is needed, such as {\"step\": 1, \"value\": 0.5}");
  }
  Reply reply;
  ESPALIER_ASSIGN_OR_RETURN(v1::Verdict verdict,
                            PostForTrial(tuner, std::move(event), trial, reply, VerdictOn));
  if (agreed && !reply.should_stop()) {
    verdict.Clear();
  } else if (agreed && !verdict.prune()) {
    verdict.set_prune(true);
    verdict.set_reason("the other ranks of its program were told so");
  }
  verdict.set_note(reply.note());
  return verdict;
}

absl::StatusOr<v1::Verdict> ShouldPrune(Tuner& tuner, const v1::TrialId& request) {
  return ReadTrial(tuner, request.trial_id(), VerdictOn);
}

absl::StatusOr<v1::TrialRecord> CancelTrial(Tuner& tuner, const v1::CancelTrialRequest& request) {
  espalier::CancelTrial event{TrialId(request.trial_id()), TrialState::kFail, request.reason()};
  if (request.state() == v1::TRIAL_PRUNED) {
    event.state = TrialState::kPruned;
  } else if (request.state() != v1::TRIAL_FAIL && request.state() != v1::TRIAL_STATE_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat("state: a trial is cancelled as PRUNED or FAIL, got ",
                     v1::TrialState_Name(request.state())));
  }
  return PostForTrial(tuner, std::move(event));
}

absl::StatusOr<v1::TellResponse> Tell(Tuner& tuner, const v1::TellRequest& request) {
  std::optional<Event> event;
  if (request.state() != v1::TRIAL_STATE_UNSPECIFIED) {
    ESPALIER_ASSIGN_OR_RETURN(event, ReadEnd(request));
  } else if (request.values_size() > 0) {
    return absl::InvalidArgumentError("\"values\" are final: give \"state\": \"complete\" too");
  } else if (!request.has_value()) {
    return absl::InvalidArgumentError(
        "\"value\" or \"state\" is needed, such as {\"value\": 0.5, \"state\": \"complete\"}");
  } else {
    TellValue value{TrialId(request.trial_id()), std::nullopt, request.value(), request.final()};
    ESPALIER_ASSIGN_OR_RETURN(value.from, RankOf(request));
    if (request.has_step()) value.step = request.step();
    value.extra.insert(request.extra().begin(), request.extra().end());
    event = value;
  }
  Reply reply;
  ESPALIER_ASSIGN_OR_RETURN(
      const v1::TrialState state,
      PostForTrial(tuner, *std::move(event), TrialId(request.trial_id()), reply,
                   [](const Trial& trial, const View&) { return espalier::ToProto(trial.state); }));
  v1::TellResponse response;
  response.set_should_stop(reply.should_stop());
  response.set_note(reply.note());
  response.set_state(state);
  return response;
}

absl::StatusOr<v1::TrialRecord> SetAttributes(Tuner& tuner,
                                              const v1::SetAttributesRequest& request) {
  SetTrialAttributes event{TrialId(request.trial_id()), {}};
  ESPALIER_ASSIGN_OR_RETURN(event.attributes.user, ReadAttributes(request.user()));
  ESPALIER_ASSIGN_OR_RETURN(event.attributes.system,
                            ReadAttributes(request.system(), /*system=*/true));
  ESPALIER_RETURN_IF_ERROR(CheckSettable(event.attributes.system));
  Reply reply;
  return PostForTrial(tuner, std::move(event), TrialId(request.trial_id()), reply,
                      [](const Trial& trial, const View& view) { return ToRecord(trial, view); });
}

absl::StatusOr<v1::TrialRecord> GetTrial(Tuner& tuner, const v1::TrialId& request) {
  return ReadTrial(tuner, request.trial_id(),
                   [](const Trial& trial, const View& view) { return ToRecord(trial, view); });
}

absl::StatusOr<v1::TrialRecord> GetBestTrial(Tuner& tuner, const v1::StudyName& request) {
  absl::StatusOr<v1::TrialRecord> best = NoStudy(request.name());
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    const TunerState& state = view.core.state();
    const Study* study = state.FindStudy(request.name());
    if (study == nullptr) return;
    if (study->spec.directions.size() > 1) {
      best = absl::FailedPreconditionError(absl::StrCat("study \"", request.name(), "\" has ",
                                                        study->spec.directions.size(),
                                                        " directions: no one trial is the best"));
    } else if (const auto number = BestTrial(state, *study)) {
      best = ToRecord(state.trials.at(study->trials.at(static_cast<std::size_t>(*number))), view);
    } else {
      const bool any_breaks =
          std::any_of(study->trials.begin(), study->trials.end(),
                      [&](TrialId id) { return !KeepsTo(*state.trials.at(id).constraints); });
      best = absl::NotFoundError(
          absl::StrCat("study \"", request.name(), "\" has no trial with a value yet",
                       any_breaks ? ", or none that keeps to its constraints" : ""));
    }
  }));
  return best;
}

}  // namespace espalier::api
