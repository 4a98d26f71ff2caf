#pragma once

#include <memory>
#include <string>

#include "storage.grpc.pb.h"
#include "tests/server/running_service.h"

namespace espalier {

// How tests call Optuna's storage: over gRPC, or where all synchronisation has to be seen
// (in_process_server.h) without it.
#ifdef ESPALIER_CALLS_IN_PROCESS

class InProcessStorageStub {
  using Service = optuna::StorageService::WithRawCallbackMethod_GetTrials<
      optuna::StorageService::CallbackService>;
  using Bytes = grpc::ByteBuffer;

 public:
  explicit InProcessStorageStub(const std::string& address)
      : service_(InProcessServer::At(address).Find<Service>()) {}

#define ESPALIER_METHOD(name)                                                               \
  grpc::Status name(grpc::ClientContext*, const optuna::name##Request& request,             \
                    optuna::name##Reply* reply) {                                           \
    grpc::ServerUnaryReactor* (Service::*method)(                                           \
        grpc::CallbackServerContext*, const optuna::name##Request*, optuna::name##Reply*) = \
        &Service::name;                                                                     \
    return CallInProcess(service_, method, request, reply);                                 \
  }
  ESPALIER_METHOD(CreateNewStudy)
  ESPALIER_METHOD(DeleteStudy)
  ESPALIER_METHOD(GetStudyIdFromName)
  ESPALIER_METHOD(CreateNewTrial)
  ESPALIER_METHOD(SetTrialParameter)
  ESPALIER_METHOD(SetTrialStateValues)
  ESPALIER_METHOD(SetTrialIntermediateValue)
  ESPALIER_METHOD(SetTrialUserAttribute)
  ESPALIER_METHOD(GetTrial)
#undef ESPALIER_METHOD

  // Its messages go as bytes.
  grpc::Status GetTrials(grpc::ClientContext*, const optuna::GetTrialsRequest& request,
                         optuna::GetTrialsReply* reply) {
    Bytes asked;
    bool own = false;
    grpc::SerializationTraits<optuna::GetTrialsRequest>::Serialize(request, &asked, &own);
    Bytes answered;
    grpc::ServerUnaryReactor* (Service::*method)(grpc::CallbackServerContext*, const Bytes*,
                                                 Bytes*) = &Service::GetTrials;
    const grpc::Status status = CallInProcess(service_, method, asked, &answered);
    if (!status.ok()) return status;
    return grpc::SerializationTraits<optuna::GetTrialsReply>::Deserialize(&answered, reply);
  }

 private:
  Service& service_;
};

using StorageStub = InProcessStorageStub;
inline std::unique_ptr<StorageStub> StorageStubAt(const std::string& address) {
  return std::make_unique<StorageStub>(address);
}

#else

using StorageStub = optuna::StorageService::Stub;
inline std::unique_ptr<StorageStub> StorageStubAt(const std::string& address) {
  return optuna::StorageService::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
}

#endif

}  // namespace espalier
