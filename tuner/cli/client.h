#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tuner.pb.h"
#include "tuner/cli/options/client_options.h"

namespace espalier {

// A connection to the tuner service. Each method is one call; may be used from several threads.
// Errors are the service's own; UNAVAILABLE names the address and, until the service has answered
// once, the remedy.
class Client {
 public:
  explicit Client(ClientOptions options);
  ~Client();

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

  const std::string& address() const;

 private:
  class Connection;  // keeps gRPC's headers from those who only call
  std::unique_ptr<Connection> connection_;
};

}  // namespace espalier
