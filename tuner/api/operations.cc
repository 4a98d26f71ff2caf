#include "tuner/api/operations.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tuner/api/convert.h"
#include "tuner/core/samplers/sampler.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/studies/like.h"
#include "tuner/core/studies/validate.h"
#include "tuner/study_file/study_file.h"
#include "tuner/study_file/words.h"

namespace espalier::api {

namespace {

// What messages call the text of a CreateStudyRequest that does not say it.
constexpr char kStudyLabel[] = "study_json";

// `reply`, if it is wanted, gets the core's.
absl::StatusOr<v1::Study> PostForStudy(Tuner& tuner, Event event, Reply* reply = nullptr) {
  std::optional<v1::Study> study;
  Reply answered = tuner.PostAndRead(std::move(event), [&](const Reply& given, const View& view) {
    const auto& studies = view.core.state().studies;
    const auto it = studies.find(given.study());
    if (it != studies.end()) study = ToProto(it->second, view);
  });
  if (!answered.status.ok()) return answered.status;
  if (!study) return NoStudy(answered.study());
  if (reply != nullptr) *reply = std::move(answered);
  return *std::move(study);
}

// What is known of nodes that have left: their names.
void AddFormerNodes(const TunerState& state, v1::StudyDetails& details) {
  std::set<std::int64_t> told;
  for (const v1::Node& node : details.pool().nodes()) told.insert(node.id());
  for (const v1::Trial& trial : details.trials()) {
    for (const v1::SlotSpan& span : trial.spans()) {
      for (const v1::Slot& slot : span.slots()) {
        const auto known = state.nodes.find(NodeId{slot.node_id()});
        if (known == state.nodes.end() || !told.insert(slot.node_id()).second) continue;
        v1::NodeName& former = *details.add_former_nodes();
        former.set_id(slot.node_id());
        former.set_name(known->second);
      }
    }
  }
}

v1::StudyDetails Details(const Study& study, const View& view, bool active_only, bool with_curves) {
  v1::StudyDetails details;
  const TunerState& state = view.core.state();
  *details.mutable_study() = ToProto(study, view);
  const std::int64_t best = details.study().has_best_trial() ? details.study().best_trial() : -1;
  for (const TrialId id : study.trials) {
    const Trial& trial = state.trials.at(id);
    if (active_only && Ended(trial.state) && trial.number != best) continue;
    *details.add_trials() = ToProto(trial, view, with_curves);
  }
  const auto& decisions = study.decisions;
  const std::ptrdiff_t skipped =
      active_only ? std::max<std::ptrdiff_t>(0, std::ssize(decisions) - kRecentDecisions) : 0;
  for (auto it = decisions.begin() + skipped; it != decisions.end(); ++it) {
    *details.add_decisions() = ToProto(*it);
  }
  *details.mutable_pool() = PoolToProto(view);
  AddFormerNodes(state, details);
  return details;
}

// A study that is like another takes that one's trials, as they are now.
absl::Status TakeTrialsLike(const TunerState& state, const std::string& label, StudySpec& spec) {
  if (spec.like.study.empty() || !spec.like.trials.empty()) return absl::OkStatus();
  const Study* existing = state.FindStudy(spec.name);
  if (existing != nullptr && existing->spec.like.study == spec.like.study) {
    spec.like = existing->spec.like;  // it is asked for again
  } else {
    ESPALIER_ASSIGN_OR_RETURN(spec.like, TrialsLike(state, spec));
  }
  ESPALIER_ASSIGN_OR_RETURN(spec, WithWording(spec, label));
  return absl::OkStatus();
}

// What only another process can say of a new study's sampler.
absl::Status CheckNewSampler(Tuner& tuner, espalier::CreateStudy& study) {
  const auto sampler = MakeSampler(study.spec.sampler.name, study.spec.sampler.options);
  if (!sampler.ok() || (*sampler)->outside() == nullptr) return absl::OkStatus();
  if (!Validate(study.spec).ok()) return absl::OkStatus();  // the core says why
  bool exists = false;
  ESPALIER_RETURN_IF_ERROR(tuner.Read(
      [&](const View& view) { exists = view.core.state().FindStudy(study.spec.name) != nullptr; }));
  if (exists) return absl::OkStatus();
  ESPALIER_ASSIGN_OR_RETURN(const std::string unknown, tuner.CheckSampler(study.spec));
  if (!unknown.empty()) {
    study.note = absl::StrCat("its sampler was not checked, ", unknown,
                              ": the first suggestion tells what is wrong with it");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CreatedStudy> CreateOrFindStudy(Tuner& tuner,
                                               const v1::CreateStudyRequest& request) {
  if (request.study_json().size() > kMaxStudyJson) {
    return absl::InvalidArgumentError(absl::StrCat("study_json: at most ", kMaxStudyJson,
                                                   " bytes, got ", request.study_json().size()));
  }
  if (request.directory().empty() || request.directory().front() != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("directory: an absolute path is needed, got \"", request.directory(), "\""));
  }
  if (const auto zero = request.directory().find('\0'); zero != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("directory: needs a path without a zero byte, got one after \"",
                     request.directory().substr(0, zero), "\""));
  }
  if (request.label().size() > kMaxStudyLabel) {
    return absl::InvalidArgumentError(
        absl::StrCat("label: at most ", kMaxStudyLabel, " bytes, got ", request.label().size()));
  }
  const std::string label = request.label().empty() ? kStudyLabel : request.label();
  ESPALIER_ASSIGN_OR_RETURN(StudySpec spec, ParseStudy(request.study_json(), label,
                                                       request.directory(), SpaceFiles::kRefused));
  if (!request.like().empty()) spec.like = {.study = request.like()};
  return CreateParsedStudy(tuner, {std::move(spec), request.exist_ok(), request.request_key()},
                           label);
}

absl::StatusOr<CreatedStudy> CreateParsedStudy(Tuner& tuner, espalier::CreateStudy study,
                                               const std::string& label) {
  if (const absl::Status named = CheckPlaceholders(study.spec); !named.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(label, ": ", std::string(named.message())));
  }
  if (!IsReadable(study.spec.name)) {
    return absl::InvalidArgumentError(
        "name: want a text that is not blank and has no control characters");
  }
  if (!study.spec.like.study.empty()) {
    absl::Status taken;
    ESPALIER_RETURN_IF_ERROR(tuner.Read(
        [&](const View& view) { taken = TakeTrialsLike(view.core.state(), label, study.spec); }));
    ESPALIER_RETURN_IF_ERROR(taken);
  }
  ESPALIER_RETURN_IF_ERROR(CheckNewSampler(tuner, study));
  Reply reply;
  ESPALIER_ASSIGN_OR_RETURN(v1::Study created, PostForStudy(tuner, std::move(study), &reply));
  return CreatedStudy{std::move(created), reply.existed()};
}

absl::StatusOr<v1::Study> CreateStudy(Tuner& tuner, const v1::CreateStudyRequest& request) {
  ESPALIER_ASSIGN_OR_RETURN(CreatedStudy created, CreateOrFindStudy(tuner, request));
  return std::move(created.study);
}

absl::StatusOr<v1::ListStudiesResponse> ListStudies(Tuner& tuner, const v1::ListStudiesRequest&) {
  v1::ListStudiesResponse response;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&response](const View& view) {
    for (const auto& [id, study] : view.core.state().studies) {
      *response.add_studies() = ToProto(study, view);
    }
  }));
  return response;
}

absl::StatusOr<v1::StudyDetails> GetStudy(Tuner& tuner, const v1::GetStudyRequest& request) {
  std::optional<v1::StudyDetails> details;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    const Study* study = view.core.state().FindStudy(request.name());
    if (study == nullptr) return;
    details = Details(*study, view, request.active_only(), !request.without_values());
  }));
  if (!details) return NoStudy(request.name());
  return *std::move(details);
}

absl::StatusOr<v1::Study> StopStudy(Tuner& tuner, const v1::StudyName& request) {
  return PostForStudy(tuner, espalier::StopStudy{request.name()});
}

absl::StatusOr<v1::Study> ResumeStudy(Tuner& tuner, const v1::ResumeStudyRequest& request) {
  if (request.max_trials() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_trials must be 0 (as it was) or more, got ", request.max_trials()));
  }
  if (!(request.time_limit_s() >= 0 && request.time_limit_s() <= kMaxTime_s)) {
    return absl::InvalidArgumentError(absl::StrCat("time_limit_s must be 0 (as it was) to ",
                                                   kMaxTime_s, " seconds, got ",
                                                   request.time_limit_s()));
  }
  return PostForStudy(
      tuner, espalier::ResumeStudy{request.name(), request.max_trials(), request.time_limit_s()});
}

absl::StatusOr<v1::Study> DeleteStudy(Tuner& tuner, const v1::StudyName& request) {
  std::optional<v1::Study> study;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&](const View& view) {
    const Study* found = view.core.state().FindStudy(request.name());
    if (found != nullptr) study = ToProto(*found, view);
  }));
  if (!study) return NoStudy(request.name());
  const Reply reply = tuner.Post(espalier::DeleteStudy{StudyId(study->id())});
  if (!reply.status.ok()) return reply.status;
  return *std::move(study);
}

absl::StatusOr<v1::Trial> PinTrial(Tuner& tuner, const v1::PinTrialRequest& request) {
  std::optional<v1::Trial> trial;
  const Reply reply = tuner.PostAndRead(
      espalier::PinTrial{request.study(), request.trial_number(), request.slots()},
      [&trial](const Reply& given, const View& view) {
        const auto& trials = view.core.state().trials;
        const auto it = trials.find(given.trial());
        if (it != trials.end()) trial = ToProto(it->second, view);
      });
  if (!reply.status.ok()) return reply.status;
  if (!trial) return NoTrial(reply.trial());
  return *std::move(trial);
}

absl::StatusOr<v1::Node> DrainNode(Tuner& tuner, const v1::DrainNodeRequest& request) {
  v1::Node node;
  // One that is not here at the moment is drained when it comes.
  node.set_name(request.name());
  node.set_draining(!request.undo());
  const Reply reply =
      tuner.PostAndRead(espalier::DrainNode{request.name(), request.undo(), request.within_s()},
                        [&node](const Reply& given, const View& view) {
                          node.set_id(given.node().value);
                          const v1::Pool pool = PoolToProto(view);
                          for (const v1::Node& known : pool.nodes()) {
                            if (known.id() == given.node().value) node = known;
                          }
                        });
  if (!reply.status.ok()) return reply.status;
  return node;
}

absl::StatusOr<v1::Pool> SetPoolPolicy(Tuner& tuner, const v1::SetPoolPolicyRequest& request) {
  espalier::SetPoolPolicy event;
  event.policy.name = request.name();
  event.policy.options.insert(request.options().begin(), request.options().end());
  v1::Pool pool;
  const Reply reply = tuner.PostAndRead(
      std::move(event), [&pool](const Reply&, const View& view) { pool = PoolToProto(view); });
  if (!reply.status.ok()) return reply.status;
  return pool;
}

absl::StatusOr<v1::Pool> GetPool(Tuner& tuner, const v1::GetPoolRequest&) {
  v1::Pool pool;
  ESPALIER_RETURN_IF_ERROR(tuner.Read([&pool](const View& view) { pool = PoolToProto(view); }));
  return pool;
}

}  // namespace espalier::api
