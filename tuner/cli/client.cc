#include "tuner/cli/client.h"

#include <chrono>
#include <utility>

namespace espalier {

Client::Client(ClientOptions options) : options_(std::move(options)) {
  grpc::ChannelArguments arguments;
  // A study with thousands of trials and their curves is more than the default of 4 MiB.
  arguments.SetMaxReceiveMessageSize(-1);
  // Also how long one attempt to connect may take. In a burst of newcomers a service's kernel drops
  // some of them and tries again after 1, 3 and 7 s.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10'000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A proxy for the web is none for the tuner.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto credentials = options_.tls_roots.empty()
                               ? grpc::InsecureChannelCredentials()
                               : grpc::SslCredentials({options_.tls_roots, "", ""});
  stub_ = v1::Tuner::NewStub(grpc::CreateCustomChannel(options_.address, credentials, arguments));
}

template <typename Request, typename Response>
absl::StatusOr<Response> Client::Call(grpc::Status (v1::Tuner::Stub::*method)(grpc::ClientContext*,
                                                                              const Request&,
                                                                              Response*),
                                      const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::microseconds(static_cast<std::int64_t>(options_.timeout_s * 1e6)));
  context.set_wait_for_ready(options_.wait_for_ready);
  if (!options_.token.empty()) {
    context.AddMetadata("authorization", "Bearer " + options_.token);
  }
  Response response;
  const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
  if (status.ok()) return response;
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
      status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::UnavailableError("no tuner service answers at \"" + options_.address + "\" (" +
                                  status.error_message() +
                                  "): start one with `tuner serve`, or name another with "
                                  "--service HOST:PORT or --dir DIR");
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

absl::StatusOr<v1::Study> Client::CreateStudy(const v1::CreateStudyRequest& request) {
  return Call(&v1::Tuner::Stub::CreateStudy, request);
}

absl::StatusOr<v1::ListStudiesResponse> Client::ListStudies() {
  return Call(&v1::Tuner::Stub::ListStudies, v1::ListStudiesRequest());
}

absl::StatusOr<v1::StudyDetails> Client::GetStudy(const v1::GetStudyRequest& request) {
  return Call(&v1::Tuner::Stub::GetStudy, request);
}

absl::StatusOr<v1::Study> Client::StopStudy(const std::string& name) {
  v1::StudyName request;
  request.set_name(name);
  return Call(&v1::Tuner::Stub::StopStudy, request);
}

absl::StatusOr<v1::Study> Client::DeleteStudy(const std::string& name) {
  v1::StudyName request;
  request.set_name(name);
  return Call(&v1::Tuner::Stub::DeleteStudy, request);
}

absl::StatusOr<v1::Study> Client::ResumeStudy(const v1::ResumeStudyRequest& request) {
  return Call(&v1::Tuner::Stub::ResumeStudy, request);
}

absl::StatusOr<v1::TellResponse> Client::Tell(const v1::TellRequest& request) {
  return Call(&v1::Tuner::Stub::Tell, request);
}

absl::StatusOr<v1::TrialRecord> Client::CancelTrial(const v1::CancelTrialRequest& request) {
  return Call(&v1::Tuner::Stub::CancelTrial, request);
}

absl::StatusOr<v1::TrialOutput> Client::GetTrialOutput(const v1::TrialOutputRequest& request) {
  return Call(&v1::Tuner::Stub::GetTrialOutput, request);
}

absl::StatusOr<v1::Trial> Client::PinTrial(const v1::PinTrialRequest& request) {
  return Call(&v1::Tuner::Stub::PinTrial, request);
}

absl::StatusOr<v1::Node> Client::DrainNode(const v1::DrainNodeRequest& request) {
  return Call(&v1::Tuner::Stub::DrainNode, request);
}

absl::StatusOr<v1::Pool> Client::GetPool() {
  return Call(&v1::Tuner::Stub::GetPool, v1::GetPoolRequest());
}

}  // namespace espalier
