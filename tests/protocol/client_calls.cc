#include "tests/protocol/client_calls.h"

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tuner.grpc.pb.h"
#include "tuner/proto/grpc_status.h"

namespace espalier {
namespace {

using Stub = v1::Tuner::Stub;
using Call = std::function<absl::StatusOr<std::string>(Stub&, const std::string&)>;

template <typename Request, typename Response>
Call Through(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*)) {
  return [method](Stub& stub, const std::string& bytes) -> absl::StatusOr<std::string> {
    Request request;
    Response response;
    if (!request.ParseFromString(bytes)) return absl::DataLossError("not such a request");
    grpc::ClientContext context;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (status.ok()) return response.SerializeAsString();
    return FromGrpc(status);
  };
}

const std::map<std::string, Call>& Calls() {
  static const std::map<std::string, Call> calls = {
      {"Ask", Through(&Stub::Ask)},
      {"CancelTrial", Through(&Stub::CancelTrial)},
      {"CreateStudy", Through(&Stub::CreateStudy)},
      {"DeleteStudy", Through(&Stub::DeleteStudy)},
      {"DrainNode", Through(&Stub::DrainNode)},
      {"Enqueue", Through(&Stub::Enqueue)},
      {"GetBestTrial", Through(&Stub::GetBestTrial)},
      {"GetPool", Through(&Stub::GetPool)},
      {"GetStudy", Through(&Stub::GetStudy)},
      {"GetTrial", Through(&Stub::GetTrial)},
      {"GetTrialOutput", Through(&Stub::GetTrialOutput)},
      {"ListStudies", Through(&Stub::ListStudies)},
      {"PinTrial", Through(&Stub::PinTrial)},
      {"Report", Through(&Stub::Report)},
      {"ResumeStudy", Through(&Stub::ResumeStudy)},
      {"SetAttributes", Through(&Stub::SetAttributes)},
      {"ShouldPrune", Through(&Stub::ShouldPrune)},
      {"StopStudy", Through(&Stub::StopStudy)},
      {"Tell", Through(&Stub::Tell)},
  };
  return calls;
}

}  // namespace

absl::StatusOr<std::string> CallMethod(const std::string& address, const std::string& method,
                                       const std::string& request) {
  const auto call = Calls().find(method);
  if (call == Calls().end()) return absl::NotFoundError(absl::StrCat("no method ", method));
  const auto stub =
      v1::Tuner::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  return call->second(*stub, request);
}

std::vector<std::string> Methods() {
  std::vector<std::string> names;
  for (const auto& [name, call] : Calls()) names.push_back(name);
  return names;
}

}  // namespace espalier
