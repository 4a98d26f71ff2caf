#include "adapters/nni/service/experiments.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "adapters/nni/service/channel.h"
#include "adapters/nni/service/definition.h"
#include "adapters/nni/service/names.h"
#include "adapters/nni/service/submission.h"
#include "adapters/nni/service/trial_command.h"
#include "tuner/api/json.h"
#include "tuner/api/operations.h"
#include "tuner/credentials/hexadecimal.h"

namespace espalier::nni {

namespace {

absl::Status NoExperiment(const std::string& experiment) {
  return absl::NotFoundError(absl::StrCat(
      "no experiment \"", experiment, "\": it is opened by PUT /nni/v1/experiments/", experiment));
}

ProcessVariables EnvironmentOf(const TrialPlace& place) {
  const std::map<std::string, std::string> variables = TrialVariables(place);
  return {variables.begin(), variables.end()};
}

// What was decided for the trial, a line each.
std::string DecisionsOf(const Trial& trial, const Study& study) {
  std::string text;
  for (const Decision& decision : study.decisions) {
    if (decision.trial_number != trial.number) continue;
    absl::StrAppend(&text,
                    absl::FormatTime("%Y-%m-%d %H:%M:%E3S UTC ",
                                     absl::UnixEpoch() + absl::Seconds(Seconds(decision.at)),
                                     absl::UTCTimeZone()),
                    std::string(ToString(decision.kind)), ", ", decision.from_slots, " to ",
                    decision.to_slots, " slots: ", decision.reason, "\n");
  }
  return text.empty() ? "nothing has been decided for the trial yet\n" : text;
}

// What a submission finds.
struct Before {
  TrialId trial;  // zero: it is new
  bool ended = false;
  bool held = false;
  ProcessVariables environment;
  std::string definition;
  std::string channel_key;
  StudyState study = StudyState::kRunning;
};

}  // namespace

// ---- Looking -----------------------------------------------------------------------------------

absl::Status Experiments::ReadStudy(const std::string& experiment, const LookAtStudy& look) {
  ESPALIER_RETURN_IF_ERROR(CheckId("experiment", experiment));
  bool found = false;
  ESPALIER_RETURN_IF_ERROR(tuner_.Read([&](const View& view) {
    const Study* study = view.core.state().FindStudy(StudyName(experiment));
    if (study == nullptr || !ExperimentOf(study->spec)) return;
    found = true;
    look(*study, view);
  }));
  return found ? absl::OkStatus() : NoExperiment(experiment);
}

absl::Status Experiments::ReadTrial(const std::string& experiment, const std::string& trial,
                                    const LookAtTrial& look) {
  ESPALIER_RETURN_IF_ERROR(CheckId("trial", trial));
  bool found = false;
  ESPALIER_RETURN_IF_ERROR(ReadStudy(experiment, [&](const Study& study, const View& view) {
    const TrialId id = feed_.Find(study.id, trial);
    const auto it = view.core.state().trials.find(id);
    if (it == view.core.state().trials.end()) return;
    found = true;
    look(it->second, study, view);
  }));
  if (found) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("experiment \"", experiment, "\" has no trial \"", trial, "\""));
}

absl::StatusOr<std::string> Experiments::Show(const std::string& experiment,
                                              const std::string& trial) {
  TrialView seen;
  ESPALIER_RETURN_IF_ERROR(
      ReadTrial(experiment, trial, [&](const Trial& t, const Study& study, const View& view) {
        seen = ViewOf(t, study, feed_.WholeOf(study.id, t.id), view);
      }));
  return ToJson(seen);
}

absl::StatusOr<std::string> Experiments::Describe() {
  int slots = 0;
  std::size_t nodes = 0;
  ESPALIER_RETURN_IF_ERROR(tuner_.Read([&](const View& view) {
    slots = view.core.SlotsTotal();
    nodes = view.core.Nodes().size();
  }));
  return absl::StrCat("{\"name\":\"espalier\",\"version\":\"", ESPALIER_VERSION,
                      "\",\"protocol\":", kProtocol, ",\"slots\":", slots, ",\"nodes\":", nodes,
                      "}");
}

absl::StatusOr<std::string> Experiments::Events(const std::string& experiment,
                                                std::string_view after, const std::string& wait_s) {
  double wait = 0;
  if (!wait_s.empty() && !(absl::SimpleAtod(wait_s, &wait) && wait >= 0 && wait <= kMaxWait_s)) {
    return absl::InvalidArgumentError(
        absl::StrCat("wait_s: needs seconds from 0 to ", kMaxWait_s, ", got \"", wait_s, "\""));
  }
  const std::int64_t revision = feed_.RevisionOf(after);
  StudyId id;
  ESPALIER_RETURN_IF_ERROR(
      ReadStudy(experiment, [&](const Study& study, const View&) { id = study.id; }));
  if (wait > 0) feed_.Await(id, revision, wait);
  std::int64_t seen = revision;
  std::vector<TrialView> trials;
  ESPALIER_RETURN_IF_ERROR(ReadStudy(experiment, [&](const Study& study, const View& view) {
    const EventFeed::News news = feed_.Since(study.id, revision);
    seen = news.revision;
    for (const EventFeed::TrialNews& of_trial : news.trials) {
      const auto trial = view.core.state().trials.find(of_trial.trial);
      if (trial == view.core.state().trials.end()) continue;
      trials.push_back(ViewOf(trial->second, study, of_trial, view));
    }
  }));
  std::string body = absl::StrCat("{\"cursor\":\"", feed_.Cursor(seen), "\",\"trials\":[");
  for (std::size_t i = 0; i < trials.size(); ++i) {
    absl::StrAppend(&body, i > 0 ? "," : "", ToJson(trials[i]));
  }
  return body + "]}";
}

absl::StatusOr<std::string> Experiments::File(const std::string& experiment,
                                              const std::string& trial, const std::string& name) {
  std::string text;
  v1::TrialOutputRequest output;
  const bool known =
      name == "stdout" || name == "stderr" || name == "trial.log" || name == "parameter.cfg";
  if (!known) {
    return absl::NotFoundError(absl::StrCat(
        "no file \"", name, "\" of a trial; known: stdout, stderr, trial.log, parameter.cfg"));
  }
  ESPALIER_RETURN_IF_ERROR(
      ReadTrial(experiment, trial, [&](const Trial& t, const Study& study, const View&) {
        if (name == "trial.log") {
          text = DecisionsOf(t, study);
        } else if (name == "parameter.cfg") {
          text = TextAttribute(t.attributes, kParameter);
        } else {
          output.set_trial_id(t.id.value);
        }
      }));
  if (name == "stderr") {
    text = "A trial's errors are in its stdout, in the order in which it printed both.\n";
  } else if (name == "stdout") {
    ESPALIER_ASSIGN_OR_RETURN(v1::TrialOutput read, api::GetTrialOutput(tuner_, output));
    text = std::move(*read.mutable_text());
  }
  return text;
}

// ---- Experiments -------------------------------------------------------------------------------

absl::StatusOr<std::string> Experiments::Open(const std::string& experiment,
                                              std::string_view body) {
  ESPALIER_RETURN_IF_ERROR(CheckId("experiment", experiment));
  ESPALIER_ASSIGN_OR_RETURN(const Definition definition, ReadDefinition(experiment, body));
  absl::Status possible;
  ESPALIER_RETURN_IF_ERROR(
      tuner_.Read([&](const View& view) { possible = CheckPool(definition, view); }));
  ESPALIER_RETURN_IF_ERROR(possible);

  const std::lock_guard lock(opening_);
  StudyId id;
  bool has_key = false;
  std::string before;
  const auto look = [&](const Study& study, const View&) {
    id = study.id;
    has_key = Attribute(study.attributes, kChannelKey) != nullptr;
    if (const std::string* known = Attribute(study.attributes, kDefinition)) before = *known;
  };
  if (const absl::Status status = ReadStudy(experiment, look); absl::IsNotFound(status)) {
    const Reply reply = tuner_.Post(CreateStudy{definition.study, /*exist_ok=*/true});
    if (!reply.status.ok()) return reply.status;
    id = reply.study();
  } else if (!status.ok()) {
    return status;
  }
  if (!before.empty() && before != definition.canonical) {
    return absl::FailedPreconditionError(absl::StrCat(
        "experiment \"", experiment, "\" is known with another definition; it differs in: ",
        DifferingKeys(before, definition.canonical), ". Start a new experiment for that"));
  }
  const auto set = [&](const char* name, const std::string& json) {
    return tuner_.Post(SetStudyAttribute{id, true, name, json}).status;
  };
  if (before.empty()) ESPALIER_RETURN_IF_ERROR(set(kDefinition, definition.canonical));
  if (!has_key) ESPALIER_RETURN_IF_ERROR(set(kChannelKey, QuoteJson(NewChannelKey())));
  ESPALIER_RETURN_IF_ERROR(TakeUp(experiment));

  std::string trials;
  ESPALIER_RETURN_IF_ERROR(ReadStudy(experiment, [&](const Study& study, const View& view) {
    view.core.state().ForEachTrial(study, [&](const Trial& trial) {
      const std::string name = feed_.NameOf(study.id, trial.id);
      if (!name.empty()) absl::StrAppend(&trials, trials.empty() ? "" : ",", QuoteJson(name));
    });
  }));
  return absl::StrCat("{\"study\":", QuoteJson(StudyName(experiment)), ",\"trials\":[", trials,
                      "]}");
}

// A stopped one goes on, but for its trials: each waits until it is submitted again.
absl::Status Experiments::TakeUp(const std::string& experiment) {
  std::vector<TrialId> to_hold;
  bool stopped = false;
  ESPALIER_RETURN_IF_ERROR(ReadStudy(experiment, [&](const Study& study, const View& view) {
    stopped = study.state != StudyState::kRunning;
    view.core.state().ForEachTrial(study, [&](const Trial& trial) {
      if (!Ended(trial.state) && !trial.held) to_hold.push_back(trial.id);
    });
  }));
  if (!stopped) return absl::OkStatus();
  for (const TrialId trial : to_hold) {
    // One that has ended meanwhile needs no holding.
    const absl::Status status = tuner_.Post(HoldTrial{trial, true}).status;
    if (!status.ok() && !absl::IsFailedPrecondition(status)) return status;
  }
  return tuner_.Post(ResumeStudy{StudyName(experiment)}).status;
}

absl::StatusOr<std::string> Experiments::Stop(const std::string& experiment) {
  ESPALIER_RETURN_IF_ERROR(ReadStudy(experiment, [](const Study&, const View&) {}));
  const Reply reply = tuner_.Post(StopStudy{StudyName(experiment)});
  if (!reply.status.ok()) return reply.status;
  return absl::StrCat("{\"study\":", QuoteJson(StudyName(experiment)), "}");
}

// ---- Trials ------------------------------------------------------------------------------------

absl::Status Experiments::SetAttribute(TrialId trial, const char* name, const std::string& json) {
  return tuner_.Post(SetTrialAttribute{trial, true, name, json}).status;
}

absl::StatusOr<std::string> Experiments::Submit(const std::string& experiment,
                                                const std::string& trial, std::string_view body,
                                                const std::string& service_url) {
  ESPALIER_RETURN_IF_ERROR(CheckId("trial", trial));
  ESPALIER_ASSIGN_OR_RETURN(const Submission submission, ReadSubmission(body));
  Before before;
  ESPALIER_RETURN_IF_ERROR(ReadStudy(experiment, [&](const Study& study, const View& view) {
    before.study = study.state;
    before.channel_key = TextAttribute(study.attributes, kChannelKey);
    if (const auto* definition = Attribute(study.attributes, kDefinition)) {
      before.definition = *definition;
    }
    const auto it = view.core.state().trials.find(feed_.Find(study.id, trial));
    if (it == view.core.state().trials.end()) return;
    before.trial = it->first;
    before.ended = Ended(it->second.state);
    before.held = it->second.held;
    before.environment = it->second.environment;
  }));
  if (before.ended) return Show(experiment, trial);
  if (before.study != StudyState::kRunning) {
    return absl::FailedPreconditionError(
        absl::StrCat("experiment \"", experiment, "\" is ", std::string(ToString(before.study)),
                     ": open it again first, by PUT /nni/v1/experiments/", experiment));
  }
  const ProcessVariables environment =
      EnvironmentOf({.experiment = experiment,
                     .trial = trial,
                     .sequence = submission.sequence,
                     .service_url = service_url,
                     .channel_path = ChannelPath(before.channel_key, experiment, trial),
                     .checkpoint_folder = CheckpointFolder(before.definition, trial)});
  if (!before.trial) {
    EnqueueTrial event{.study = StudyName(experiment),
                       .fixed = submission.for_showing,
                       .user_attributes = {},
                       .request_key = trial,
                       .system_attributes = {{kTrial, QuoteJson(trial)},
                                             {kSequence, absl::StrCat(submission.sequence)},
                                             {kParameter, QuoteJson(submission.parameter)},
                                             {kTrialParameters, submission.parameters}},
                       .environment = environment,
                       .reads_variables = false};
    const Reply reply = tuner_.Post(std::move(event));
    if (!reply.status.ok()) return reply.status;
    return Show(experiment, trial);
  }
  // The service may be found elsewhere than when the trial was new.
  if (before.environment != environment) {
    ESPALIER_RETURN_IF_ERROR(tuner_.Post(SetTrialEnvironment{before.trial, environment}).status);
  }
  if (before.held) ESPALIER_RETURN_IF_ERROR(tuner_.Post(HoldTrial{before.trial, false}).status);
  return Show(experiment, trial);
}

absl::StatusOr<std::string> Experiments::SetParameter(const std::string& experiment,
                                                      const std::string& trial,
                                                      std::string_view body) {
  ESPALIER_ASSIGN_OR_RETURN(const std::string parameter, ReadParameter(body));
  TrialId id;
  ESPALIER_RETURN_IF_ERROR(
      ReadTrial(experiment, trial, [&](const Trial& t, const Study&, const View&) { id = t.id; }));
  ESPALIER_RETURN_IF_ERROR(SetAttribute(id, kParameter, QuoteJson(parameter)));
  return Show(experiment, trial);
}

absl::StatusOr<std::string> Experiments::Cancel(const std::string& experiment,
                                                const std::string& trial, bool early_stopped) {
  TrialId id;
  ESPALIER_RETURN_IF_ERROR(
      ReadTrial(experiment, trial, [&](const Trial& t, const Study&, const View&) { id = t.id; }));
  const Reply reply =
      tuner_.Post(early_stopped ? CancelTrial{id, TrialState::kPruned, "stopped early by NNI"}
                                : CancelTrial{id, TrialState::kFail});
  if (!reply.status.ok()) return reply.status;
  return Show(experiment, trial);
}

// ---- The trials' channel -----------------------------------------------------------------------

absl::Status Experiments::ReadByChannel(const std::string& experiment, const std::string& trial,
                                        std::string_view secret, const LookAtTrial& look) {
  bool admitted = false;
  const absl::Status status =
      ReadTrial(experiment, trial, [&](const Trial& t, const Study& study, const View& view) {
        const std::string key = TextAttribute(study.attributes, kChannelKey);
        admitted = !key.empty() && SameText(secret, ChannelSecret(key, experiment, trial));
        if (admitted) look(t, study, view);
      });
  if (absl::IsUnavailable(status) || admitted) return status;
  // A caller without the secret learns nothing of what there is.
  return absl::NotFoundError("no such channel");
}

absl::Status Experiments::OpenChannel(const std::string& experiment, const std::string& trial,
                                      std::string_view secret) {
  return ReadByChannel(experiment, trial, secret, [](const Trial&, const Study&, const View&) {});
}

Experiments::ChannelAnswer Experiments::ChannelGet(const std::string& experiment,
                                                   const std::string& trial,
                                                   std::string_view secret) {
  bool ended = false;
  std::string parameter;
  const absl::Status status =
      ReadByChannel(experiment, trial, secret, [&](const Trial& t, const Study&, const View&) {
        ended = Ended(t.state);
        parameter = TextAttribute(t.attributes, kParameter);
      });
  if (!status.ok()) return {status, 0, ""};
  if (ended) return {absl::OkStatus(), 410, "{}"};
  if (parameter.empty()) return {absl::OkStatus(), 408, "{}"};
  return {absl::OkStatus(), 200,
          absl::StrCat("{\"type\":\"parameter\",\"parameter\":", QuoteJson(parameter), "}")};
}

Experiments::ChannelAnswer Experiments::ChannelPut(const std::string& experiment,
                                                   const std::string& trial,
                                                   std::string_view secret, std::string_view body) {
  TrialId id;
  bool ended = false;
  const absl::Status status =
      ReadByChannel(experiment, trial, secret, [&](const Trial& t, const Study&, const View&) {
        id = t.id;
        ended = Ended(t.state);
      });
  if (!status.ok()) return {status, 0, ""};
  absl::StatusOr<ChannelRequest> request = ReadChannelRequest(body, trial);
  if (!request.ok()) return {request.status(), 0, ""};
  if (ended) return {absl::OkStatus(), 410, "{}"};
  if (!request->report) return {absl::OkStatus(), 200, "{}"};
  request->report->trial = id;
  const Reply reply = tuner_.Post(*std::move(request->report));
  return {reply.status, 200, "{}"};
}

}  // namespace espalier::nni
