#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tuner/server/engines/kubernetes_api.h"

namespace espalier {

// An API server that keeps pods, a secret, leases and AdaptDLJobs, as far as the service sees of
// them; pods run
// as soon as they are made, and are gone a few lists after they were deleted. It speaks TLS with a
// certificate of its own, and lets in whoever shows the token. Thread-safe.
class SmallKubernetes {
 public:
  SmallKubernetes();
  ~SmallKubernetes();

  // Where it is, with a file of its certificate and a file of a token that it takes.
  ApiServer server() const;

  struct Request {
    std::string method;
    std::string path;  // with its query
    std::string body;
    std::string content_type;
  };
  // Those that begin so ("POST /pods"), of all that have come.
  std::vector<Request> Requests(const std::string& beginning = "") const;

  // Requests that begin so are answered by this, `times` in a row.
  struct Fault {
    int code = 0;
    std::string message{};
    std::string reason{};
    std::string retry_after{};
    int times = 1;
  };
  void SetFault(const std::string& beginning, const Fault& fault);

  void TakeOnly(const std::string& token);    // from now on
  void WriteToken(const std::string& token);  // to the file of server()
  void SetPage(std::size_t pods);             // at most, of one answer to a list
  void SetStatus(const std::string& node, const std::string& status_json);
  // An AdaptDLJob: its spec, and once more after a change. Each new one has a uid of its own.
  void PutJob(const std::string& name, const std::string& spec_json);
  void DeleteJob(const std::string& name);
  std::string JobStatus(const std::string& name) const;  // JSON
  std::string JobUid(const std::string& name) const;
  void KeepDeleted();  // as when a machine is lost: nobody confirms

  std::map<std::string, int> Nodes() const;   // that have a pod: how many
  int Joined(const std::string& node) const;  // pods that were ever made
  std::string Secret(const std::string& file) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace espalier
