#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/storage/scratch_folder.h"
#include "tuner/server/engines/kubernetes_api.h"

namespace espalier {

// A new namespace of the small API server of tests/e2e/kubernetes, which is one process for all
// tests of a program. Pods run as soon as they are bound to a machine, which has room for all, and
// end as soon as they are to. small_scripted.py there does what is declared here. One thread.
class SmallKubernetes {
 public:
  SmallKubernetes();
  ~SmallKubernetes();
  SmallKubernetes(const SmallKubernetes&) = delete;
  SmallKubernetes& operator=(const SmallKubernetes&) = delete;

  // Where it is, with a file of its certificate and a file of a token that may do everything there.
  ApiServer server() const;
  // Makes what a file of deploy/kubernetes says of objects in no namespace, or removes it.
  static void Apply(const std::string& manifest);
  static void Remove(const std::string& manifest);
  // The object, or the list, of a call that does what it is to. It is not one of Requests().
  std::string Ask(const ApiCall& call);

  struct Request {
    std::string method;
    std::string path;  // below the namespace, with its query
    std::string body;  // JSON, compact and sorted
    std::string content_type;
  };
  // Those that begin so ("POST /pods"), of all that have come, once there are so many.
  std::vector<Request> Requests(const std::string& beginning = "", std::size_t at_least = 0) const;

  static constexpr int kSilent = 0;  // no code: nothing is answered until who asks gives up
  // Requests that begin so are answered by this, `times` in a row.
  struct Fault {
    int code = kSilent;
    std::string message{};
    std::string reason{};  // empty: the usual one of the code
    std::string retry_after{};
    int times = 1;
  };
  void SetFault(const std::string& beginning, const Fault& fault);
  void SetPage(int objects);  // at most, of one answer to a list

  // A new token: the one before is not taken any more.
  std::string ExchangeToken();
  void WriteToken(const std::string& token);  // to the file of server()

  // Nobody confirms any more that pods have ended.
  void LoseMachine();
  void SetStatus(const std::string& node, const std::string& status_json);
  bool Runs(const std::string& node, double within_s = 0) const;
  std::map<std::string, int> Nodes() const;   // how many pods each has that are not to end
  int Joined(const std::string& node) const;  // pods that were ever made

 private:
  const ScratchFolder folder_;
  std::string namespace_;
  int port_ = 0;
};

}  // namespace espalier
