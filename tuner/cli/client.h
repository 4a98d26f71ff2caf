#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "google/protobuf/message_lite.h"
#include "tuner.pb.h"
#include "tuner/api/operations.h"
#include "tuner/cli/options/client_options.h"

namespace espalier {

// A connection to the tuner service; may be used from several threads. Errors are the service's
// own; UNAVAILABLE names the address and, until the service has answered once, the remedy.
//
// A call that is cut off before its answer, as by a service that is restarted, is made again until
// its time is over, if that counts once (api::CountsOnce).
class Client {
 public:
  explicit Client(ClientOptions options);
  ~Client();

  // Calls an operation of the table in tuner/api/operations.h, named by its function:
  // client.Call<api::GetPool>({}).
  template <auto kFunction>
  absl::StatusOr<api::ResponseOf<kFunction>> Call(const api::RequestOf<kFunction>& request) {
    api::ResponseOf<kFunction> response;
    ESPALIER_RETURN_IF_ERROR(CallByName(api::OperationName<kFunction>(),
                                        api::CountsOnce<kFunction>(request), request, response));
    return response;
  }

  // A code that begins a session of a browser, once, as this client (tuner/proto/sessions.proto).
  absl::StatusOr<std::string> CreateLoginCode();

  const std::string& address() const;

  // From now on a call that is cut off fails at once: its caller has a way of its own to go on.
  void LeaveCutOffCalls();

 private:
  absl::Status CallByName(const char* operation, bool counts_once,
                          const google::protobuf::MessageLite& request,
                          google::protobuf::MessageLite& response);

  class Connection;  // keeps gRPC's headers from those who only call
  std::unique_ptr<Connection> connection_;
};

// For the operations that take no more than a study's name.
v1::StudyName StudyNamed(const std::string& name);

}  // namespace espalier
