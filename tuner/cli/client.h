#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "tuner.grpc.pb.h"
#include "tuner.pb.h"
#include "tuner/base/status.h"

namespace espalier {

inline constexpr const char* kDefaultService = "127.0.0.1:7077";

struct ClientOptions {
  std::string address = kDefaultService;
  // The access token. Empty: none. One with the hash of a certificate says that the service speaks
  // TLS, and with which certificate.
  std::string token;
  // PEM of the roots to trust instead; both empty: the connection is in the clear.
  std::string tls_roots{};
  double timeout_s = 30;        // of one call
  bool wait_for_ready = false;  // keep trying to connect until the timeout
};

// A connection to the tuner service. Each method is one call; may be used from several threads.
// Errors are the service's own; UNAVAILABLE names the address and, until the service has answered
// once, the remedy.
class Client {
 public:
  explicit Client(ClientOptions options);

  absl::StatusOr<v1::Study> CreateStudy(const v1::CreateStudyRequest& request);
  absl::StatusOr<v1::ListStudiesResponse> ListStudies();
  absl::StatusOr<v1::StudyDetails> GetStudy(const v1::GetStudyRequest& request);
  absl::StatusOr<v1::Study> StopStudy(const std::string& name);
  absl::StatusOr<v1::Study> DeleteStudy(const std::string& name);
  absl::StatusOr<v1::Study> ResumeStudy(const v1::ResumeStudyRequest& request);
  absl::StatusOr<v1::TellResponse> Tell(const v1::TellRequest& request);
  absl::StatusOr<v1::TrialOutput> GetTrialOutput(const v1::TrialOutputRequest& request);
  absl::StatusOr<v1::TrialRecord> CancelTrial(const v1::CancelTrialRequest& request);
  absl::StatusOr<v1::Trial> PinTrial(const v1::PinTrialRequest& request);
  absl::StatusOr<v1::Node> DrainNode(const v1::DrainNodeRequest& request);
  absl::StatusOr<v1::Pool> GetPool();
  absl::StatusOr<v1::Pool> SetPoolPolicy(const v1::SetPoolPolicyRequest& request);
  absl::StatusOr<v1::Token> CreateToken(const v1::CreateTokenRequest& request);
  absl::StatusOr<v1::ListTokensResponse> ListTokens();
  absl::StatusOr<v1::Token> RemoveToken(const std::string& token);

  const std::string& address() const { return options_.address; }

 private:
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::Tuner::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                                const Request& request);

  // Called before the first call: asks a service that is known by its token's hash for its
  // certificate.
  absl::Status Connect();

  // What to make of a call that failed.
  absl::Status ErrorOf(const grpc::Status& status);

  ClientOptions options_;
  std::atomic<bool> answered_ = false;  // whether the service has answered a call
  std::mutex connecting_;
  std::unique_ptr<v1::Tuner::Stub> stub_;
};

}  // namespace espalier
