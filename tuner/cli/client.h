#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "google/protobuf/message_lite.h"
#include "tuner.pb.h"
#include "tuner/api/operations.h"
#include "tuner/cli/options/client_options.h"

namespace espalier {

// A connection to the tuner service. Each Call is one call; may be used from several threads.
// Errors are the service's own; UNAVAILABLE names the address and, until the service has answered
// once, the remedy.
class Client {
 public:
  explicit Client(ClientOptions options);
  ~Client();

  // Calls an operation of the table in tuner/api/operations.h, named by its function:
  // client.Call<api::GetPool>({}).
  template <auto kFunction>
  absl::StatusOr<api::ResponseOf<kFunction>> Call(const api::RequestOf<kFunction>& request) {
    api::ResponseOf<kFunction> response;
    ESPALIER_RETURN_IF_ERROR(CallByName(api::OperationName<kFunction>(), request, response));
    return response;
  }

  // A code that begins a session of a browser, once, as this client (tuner/proto/sessions.proto).
  absl::StatusOr<std::string> CreateLoginCode();

  const std::string& address() const;

 private:
  absl::Status CallByName(const char* operation, const google::protobuf::MessageLite& request,
                          google::protobuf::MessageLite& response);

  class Connection;  // keeps gRPC's headers from those who only call
  std::unique_ptr<Connection> connection_;
};

// For the operations that take no more than a study's name.
v1::StudyName StudyNamed(const std::string& name);

}  // namespace espalier
