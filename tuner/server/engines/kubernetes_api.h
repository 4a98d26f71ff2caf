#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace espalier {

// The address of a Kubernetes API server, and the account with which it is called.
struct ApiServer {
  std::string address;       // https://HOST:PORT, or on loopback also http://HOST:PORT
  std::string ca_file{};     // PEM of trusted authorities; empty: those that the system trusts
  std::string token_file{};  // read for each call, since it is exchanged now and then; empty: none
  std::string space{};       // the namespace of all that is ours
};

// The server of what the options say, empty where they are not given: in a pod, that of its
// service account. InvalidArgument names the option that is needed, or what a file lacks.
absl::StatusOr<ApiServer> FindApiServer(ApiServer given);

struct ApiCall {
  std::string method;     // as in HTTP
  std::string path;       // below the namespace, such as /pods; with its query
  std::string group{};    // of the API, such as coordination.k8s.io/v1; empty: the core's
  std::string body{};     // JSON
  bool is_patch = false;  // the body is a JSON merge patch
};

// A value of a query, as it stands in a path.
std::string InQuery(const std::string& text);

inline constexpr std::size_t kMostApiAnswer = 64 << 20;

// Asks an API server, one call at a time. Errors are lines for people, with the server's own words
// where it has any. For as long as it has asked to be left alone (Retry-After) it is not asked.
//   Unavailable         it cannot be reached, is not the one that is trusted, or has a fault
//   DeadlineExceeded    it has not answered: what was to be changed may be, or not
//   Unauthenticated     it does not take the token, not even one that was just read
//   PermissionDenied    a right is missing, or a quota is used up
//   NotFound, AlreadyExists
//   Aborted             what is there is not what the call supposes
//   OutOfRange          what the call goes on with has expired
//   ResourceExhausted   it has too much to do
//   InvalidArgument     it does not take what it was sent
// One thread, which has SIGPIPE blocked from the first call on.
class KubernetesApi {
 public:
  // `limit_s` is for each of connecting, sending and receiving.
  KubernetesApi(ApiServer server, double limit_s);
  ~KubernetesApi();

  // The body of the answer.
  absl::StatusOr<std::string> Ask(const ApiCall& call);

  const ApiServer& server() const { return server_; }

 private:
  struct Answer;
  struct Connection;

  Connection& Connect();
  absl::StatusOr<Answer> Send(const ApiCall& call, const std::string& token);
  absl::StatusOr<std::string> Token() const;
  absl::Status ErrorOf(const Answer& answer);

  const ApiServer server_;
  const double limit_s_;
  std::unique_ptr<Connection> connection_;
  Time left_alone_until_{};
};

}  // namespace espalier
