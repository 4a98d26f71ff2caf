#include "adapters/optuna/storage_service.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/optuna/encoded_trials.h"
#include "adapters/optuna/messages.h"
#include "base/guarded.h"
#include "storage.grpc.pb.h"
#include "tuner/api/shown_attributes.h"
#include "tuner/core/state/refusals.h"

namespace espalier::optuna_storage {

namespace {

using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;
using grpc::ByteBuffer;

// Optuna's own clients send none; a call that may be repeated carries one as metadata.
std::string RequestKey(const Context& context) {
  const auto key = context.client_metadata().find("idempotency-key");
  if (key == context.client_metadata().end()) return {};
  return {key->second.data(), key->second.size()};
}

absl::StatusOr<const Study*> FindStudy(const TunerState& state, std::int64_t id) {
  const auto it = state.studies.find(StudyId(id));
  if (it == state.studies.end()) return NoStudy(StudyId(id));
  return &it->second;
}

// What throws on the owner's thread ends the call by its name.
template <typename Step>
absl::Status GuardedCall(const GrpcCall& call, Step step) {
  return Guarded([&call] { return std::string(call.method); }, step);
}

// The two calls whose answers may hold very many trials or studies write them as bytes.
using Base = optuna::StorageService::WithRawCallbackMethod_GetTrials<
    optuna::StorageService::CallbackService>;

class StorageService final : public Base {
 public:
  StorageService(Tuner& tuner, Answered answered) : tuner_(tuner), answered_(std::move(answered)) {}

  // ---- studies

  Reactor* CreateNewStudy(Context* context, const optuna::CreateNewStudyRequest* request,
                          optuna::CreateNewStudyReply* reply) override {
    return PostRead(
        "CreateNewStudy", context,
        [request, context]() -> absl::StatusOr<Event> {
          ESPALIER_ASSIGN_OR_RETURN(StudySpec spec, MakeSpec(*request));
          return CreateStudy{std::move(spec), false, RequestKey(*context)};
        },
        [reply](const Reply& r) { reply->set_study_id(r.study().value); });
  }
  Reactor* DeleteStudy(Context* context, const optuna::DeleteStudyRequest* request,
                       optuna::DeleteStudyReply*) override {
    return Post("DeleteStudy", context, espalier::DeleteStudy{StudyId(request->study_id())});
  }
  Reactor* SetStudyUserAttribute(Context* context,
                                 const optuna::SetStudyUserAttributeRequest* request,
                                 optuna::SetStudyUserAttributeReply*) override {
    return SetAttribute("SetStudyUserAttribute", context, *request,
                        SetStudyAttribute{StudyId(request->study_id()), false, {}, {}});
  }
  Reactor* SetStudySystemAttribute(Context* context,
                                   const optuna::SetStudySystemAttributeRequest* request,
                                   optuna::SetStudySystemAttributeReply*) override {
    return SetAttribute("SetStudySystemAttribute", context, *request,
                        SetStudyAttribute{StudyId(request->study_id()), true, {}, {}});
  }
  Reactor* GetStudyIdFromName(Context* context, const optuna::GetStudyIdFromNameRequest* request,
                              optuna::GetStudyIdFromNameReply* reply) override {
    return Read("GetStudyIdFromName", context, [request, reply](const TunerState& state) {
      const Study* study = state.FindStudy(request->study_name());
      if (study == nullptr) {
        return absl::NotFoundError(absl::StrCat("no study \"", request->study_name(), "\""));
      }
      reply->set_study_id(study->id.value);
      return absl::OkStatus();
    });
  }
  Reactor* GetStudyNameFromId(Context* context, const optuna::GetStudyNameFromIdRequest* request,
                              optuna::GetStudyNameFromIdReply* reply) override {
    return ReadStudy("GetStudyNameFromId", context, request->study_id(),
                     [reply](const Study& study) { reply->set_study_name(study.spec.name); });
  }
  Reactor* GetStudyDirections(Context* context, const optuna::GetStudyDirectionsRequest* request,
                              optuna::GetStudyDirectionsReply* reply) override {
    return ReadStudy("GetStudyDirections", context, request->study_id(),
                     [reply](const Study& study) {
                       for (const Direction direction : study.spec.directions) {
                         reply->add_directions(ToMessage(direction));
                       }
                     });
  }
  Reactor* GetStudyUserAttributes(Context* context,
                                  const optuna::GetStudyUserAttributesRequest* request,
                                  optuna::GetStudyUserAttributesReply* reply) override {
    return ReadStudy("GetStudyUserAttributes", context, request->study_id(),
                     [reply](const Study& study) {
                       reply->mutable_user_attributes()->insert(study.attributes.user.begin(),
                                                                study.attributes.user.end());
                     });
  }
  Reactor* GetStudySystemAttributes(Context* context,
                                    const optuna::GetStudySystemAttributesRequest* request,
                                    optuna::GetStudySystemAttributesReply* reply) override {
    return ReadStudy(
        "GetStudySystemAttributes", context, request->study_id(), [reply](const Study& study) {
          const Attributes shown = ShownAttributes(study);
          reply->mutable_system_attributes()->insert(shown.system.begin(), shown.system.end());
        });
  }
  Reactor* GetAllStudies(Context* context, const optuna::GetAllStudiesRequest*,
                         optuna::GetAllStudiesReply* reply) override {
    return Read("GetAllStudies", context, [reply](const TunerState& state) {
      for (const auto& [id, study] : state.studies) *reply->add_studies() = ToMessage(study);
      return absl::OkStatus();
    });
  }

  // ---- trials

  Reactor* CreateNewTrial(Context* context, const optuna::CreateNewTrialRequest* request,
                          optuna::CreateNewTrialReply* reply) override {
    return PostRead(
        "CreateNewTrial", context,
        [request, context]() -> absl::StatusOr<Event> {
          CreateTrial event{StudyId(request->study_id()), nullptr, RequestKey(*context)};
          if (!request->template_trial_is_none()) {
            ESPALIER_ASSIGN_OR_RETURN(event.content, FromMessage(request->template_trial()));
          }
          return event;
        },
        [reply](const Reply& r) { reply->set_trial_id(r.trial().value); });
  }
  Reactor* SetTrialParameter(Context* context, const optuna::SetTrialParameterRequest* request,
                             optuna::SetTrialParameterReply*) override {
    return PostRead("SetTrialParameter", context, [request]() -> absl::StatusOr<Event> {
      ESPALIER_ASSIGN_OR_RETURN(Suggestion suggestion,
                                MakeSuggestion(request->param_name(), request->distribution()));
      return SuggestParameter{TrialId(request->trial_id()), request->param_value_internal(),
                              std::move(suggestion)};
    });
  }
  Reactor* GetTrialIdFromStudyIdTrialNumber(
      Context* context, const optuna::GetTrialIdFromStudyIdTrialNumberRequest* request,
      optuna::GetTrialIdFromStudyIdTrialNumberReply* reply) override {
    return Read("GetTrialIdFromStudyIdTrialNumber", context,
                [request, reply](const TunerState& state) -> absl::Status {
                  ESPALIER_ASSIGN_OR_RETURN(const Study* study,
                                            FindStudy(state, request->study_id()));
                  const std::int64_t number = request->trial_number();
                  if (number < 0 || number >= std::ssize(study->trials)) {
                    return absl::NotFoundError(
                        absl::StrCat("study ", study->id.value, " has no trial ", number));
                  }
                  reply->set_trial_id(study->trials[static_cast<std::size_t>(number)].value);
                  return absl::OkStatus();
                });
  }
  Reactor* SetTrialStateValues(Context* context, const optuna::SetTrialStateValuesRequest* request,
                               optuna::SetTrialStateValuesReply* reply) override {
    return PostRead(
        "SetTrialStateValues", context,
        [request]() -> absl::StatusOr<Event> {
          ESPALIER_ASSIGN_OR_RETURN(const TrialState state, FromMessage(request->state()));
          return SetTrialState{TrialId(request->trial_id()),
                               state,
                               {request->values().begin(), request->values().end()}};
        },
        [reply](const Reply& r) { reply->set_trial_updated(r.updated()); });
  }
  Reactor* SetTrialIntermediateValue(Context* context,
                                     const optuna::SetTrialIntermediateValueRequest* request,
                                     optuna::SetTrialIntermediateValueReply*) override {
    return Post("SetTrialIntermediateValue", context,
                SetIntermediateValue{TrialId(request->trial_id()), request->step(),
                                     request->intermediate_value()});
  }
  Reactor* SetTrialUserAttribute(Context* context,
                                 const optuna::SetTrialUserAttributeRequest* request,
                                 optuna::SetTrialUserAttributeReply*) override {
    return SetAttribute("SetTrialUserAttribute", context, *request,
                        SetTrialAttribute{TrialId(request->trial_id()), false, {}, {}});
  }
  Reactor* SetTrialSystemAttribute(Context* context,
                                   const optuna::SetTrialSystemAttributeRequest* request,
                                   optuna::SetTrialSystemAttributeReply*) override {
    return SetAttribute("SetTrialSystemAttribute", context, *request,
                        SetTrialAttribute{TrialId(request->trial_id()), true, {}, {}});
  }
  Reactor* GetTrial(Context* context, const optuna::GetTrialRequest* request,
                    optuna::GetTrialReply* reply) override {
    return Read("GetTrial", context, [request, reply](const TunerState& state) {
      const auto it = state.trials.find(TrialId(request->trial_id()));
      if (it == state.trials.end()) return NoTrial(TrialId(request->trial_id()));
      *reply->mutable_trial() = ToMessage(it->second, state.studies.at(it->second.study));
      return absl::OkStatus();
    });
  }

  Reactor* GetTrials(Context* context, const ByteBuffer* request, ByteBuffer* reply) override;

 private:
  Reactor* Post(const char* method, Context* context, const Event& event) {
    return PostRead(method, context, [&event]() -> absl::StatusOr<Event> { return event; });
  }

  // Reads the request of who may enter, posts the event that it makes, and finishes when what that
  // changed is durable. `fill` puts numbers into the reply.
  template <typename ReadEvent, typename Fill = void (*)(const Reply&)>
  Reactor* PostRead(
      const char* method, Context* context, ReadEvent read, Fill fill = [](const Reply&) {}) {
    absl::StatusOr<Event> event = read();
    if (!event.ok()) return Refuse(method, context, event.status());
    const GrpcCall call{method, context->DefaultReactor()};
    tuner_.PostThen(*std::move(event), [this, call, fill](const Reply& reply) {
      if (reply.status.ok()) fill(reply);
      call.Finish(reply.status, answered_);
    });
    return call.reactor;
  }

  template <typename Request, typename SetAttributeEvent>
  Reactor* SetAttribute(const char* method, Context* context, const Request& request,
                        SetAttributeEvent event) {
    return PostRead(method, context, [&]() -> absl::StatusOr<Event> {
      ESPALIER_RETURN_IF_ERROR(event.system ? CheckSystemAttribute(request.key(), request.value())
                                            : CheckAttribute(request.key(), request.value()));
      event.key = request.key();
      event.value = request.value();
      return std::move(event);
    });
  }

  // `look` runs on the owner's thread and fills the reply.
  template <typename Look>
  Reactor* Read(const char* method, Context* context, Look look) {
    const GrpcCall call{method, context->DefaultReactor()};
    tuner_.ReadThen([this, call, look](const View* view) {
      absl::Status status = ShuttingDown();
      if (view != nullptr) {
        status = absl::OkStatus();
        status.Update(GuardedCall(call, [&] { status = look(view->core.state()); }));
      }
      call.Finish(status, answered_);
    });
    return call.reactor;
  }

  template <typename Look>
  Reactor* ReadStudy(const char* method, Context* context, std::int64_t id, Look look) {
    return Read(method, context, [id, look](const TunerState& state) -> absl::Status {
      ESPALIER_ASSIGN_OR_RETURN(const Study* study, FindStudy(state, id));
      look(*study);
      return absl::OkStatus();
    });
  }

  Reactor* Refuse(const char* method, Context* context, const absl::Status& status) {
    const GrpcCall call{method, context->DefaultReactor()};
    call.Finish(status, answered_);
    return call.reactor;
  }

  struct TrialsCall;
  void ReadSlice(const std::shared_ptr<TrialsCall>& call);
  // Whether all are read.
  absl::StatusOr<bool> TakeSlice(TrialsCall& call, const TunerState& state);

  Tuner& tuner_;
  const Answered answered_;
  EncodedTrials encoded_;  // used on the owner's thread only
};

// One GetTrials under way. A study's trials are read a slice at a time, so that others are served
// in between.
struct StorageService::TrialsCall {
  optuna::GetTrialsRequest request;
  std::set<std::int64_t> included;  // those not above trial_id_greater_than, not yet read
  TrialId next;                     // of those above
  TrialId last;                     // what came later is not the call's affair
  bool begun = false;
  std::vector<grpc::Slice> slices;
  ByteBuffer* reply = nullptr;
  GrpcCall call{"GetTrials"};
};

Reactor* StorageService::GetTrials(Context* context, const ByteBuffer* request, ByteBuffer* reply) {
  auto call = std::make_shared<TrialsCall>();
  ByteBuffer bytes = *request;
  if (!grpc::SerializationTraits<optuna::GetTrialsRequest>::Deserialize(&bytes, &call->request)
           .ok()) {
    return Refuse("GetTrials", context, absl::InternalError("the request cannot be read"));
  }
  const std::int64_t above = call->request.trial_id_greater_than();
  for (const std::int64_t id : call->request.included_trial_ids()) {
    if (id <= above) call->included.insert(id);
  }
  call->next = TrialId(std::max<std::int64_t>(above, 0) + 1);
  call->reply = reply;
  call->call.reactor = context->DefaultReactor();
  Reactor* reactor = call->call.reactor;
  ReadSlice(call);
  return reactor;
}

void StorageService::ReadSlice(const std::shared_ptr<TrialsCall>& call) {
  tuner_.ReadThen([this, call](const View* view) {
    if (view == nullptr) return call->call.Finish(ShuttingDown(), answered_);
    absl::StatusOr<bool> all = false;
    const absl::Status read =
        GuardedCall(call->call, [&] { all = TakeSlice(*call, view->core.state()); });
    if (!read.ok()) all = read;
    if (all.ok() && !*all) return ReadSlice(call);
    call->call.Finish(all.status(), answered_);
  });
}

absl::StatusOr<bool> StorageService::TakeSlice(TrialsCall& call, const TunerState& state) {
  ESPALIER_ASSIGN_OR_RETURN(const Study* study, FindStudy(state, call.request.study_id()));
  if (!call.begun) {
    call.begun = true;
    call.last = state.last_trial;
    encoded_.KeepOnly(state);
  }
  std::size_t room = kTrialsInSlice;
  while (room > 0 && !call.included.empty()) {
    const TrialId id(*call.included.begin());
    call.included.erase(call.included.begin());
    const auto trial = state.trials.find(id);
    if (trial == state.trials.end() || trial->second.study != study->id) continue;
    call.slices.push_back(encoded_.Encode(trial->second, *study));
    --room;
  }
  const std::vector<TrialId>& trials = study->trials;
  auto next = std::lower_bound(trials.begin(), trials.end(), call.next);
  for (; room > 0 && next != trials.end() && *next <= call.last; ++next, --room) {
    call.slices.push_back(encoded_.Encode(state.trials.at(*next), *study));
    call.next = TrialId(next->value + 1);
  }
  if (!call.included.empty() || (next != trials.end() && *next <= call.last)) return false;
  *call.reply = ByteBuffer(call.slices.data(), call.slices.size());
  return true;
}

class StorageFrontend final : public Frontend {
 public:
  const char* name() const override { return "optuna"; }

  std::unique_ptr<grpc::Service> MakeGrpcService(Tuner& tuner, Answered answered) override {
    return std::make_unique<StorageService>(tuner, std::move(answered));
  }
};

}  // namespace

std::unique_ptr<Frontend> MakeFrontend() { return std::make_unique<StorageFrontend>(); }

}  // namespace espalier::optuna_storage
