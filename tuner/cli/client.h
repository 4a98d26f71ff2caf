#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "tuner.grpc.pb.h"
#include "tuner.pb.h"
#include "tuner/base/status.h"

namespace espalier {

inline constexpr const char* kDefaultService = "127.0.0.1:7077";

struct ClientOptions {
  std::string address = kDefaultService;
  std::string token;            // empty: none
  std::string tls_roots{};      // PEM of whom to trust; empty: the connection is in the clear
  double timeout_s = 30;        // of one call
  bool wait_for_ready = false;  // keep trying to connect until the timeout
};

// A connection to the tuner service. Each method is one call; may be used from several threads.
// An error says what the service said; UNAVAILABLE names the address and the remedy.
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

  const std::string& address() const { return options_.address; }

 private:
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::Tuner::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                                const Request& request);

  ClientOptions options_;
  std::unique_ptr<v1::Tuner::Stub> stub_;
};

}  // namespace espalier
