#include "tests/server/engines/small_kubernetes.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/private_files.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/credentials/certificate.h"

namespace espalier {

namespace {

using Json = nlohmann::json;

constexpr const char* kPods = "/api/v1/namespaces/lab/pods";
constexpr const char* kSecrets = "/api/v1/namespaces/lab/secrets";
constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/lab/leases";
constexpr const char* kJobs = "/apis/adaptdl.petuum.com/v1/namespaces/lab/adaptdljobs";
constexpr int kListsUntilGone = 2;

Json StatusOf(int code, const std::string& message, const std::string& reason) {
  return {{"kind", "Status"}, {"code", code}, {"message", message}, {"reason", reason}};
}

// The path below the namespace, which is what tests name.
std::string Short(const std::string& path) {
  const std::size_t at = path.find("/namespaces/lab/");
  return at == std::string::npos ? path : path.substr(at + std::string("/namespaces/lab").size());
}

}  // namespace

struct SmallKubernetes::Impl {
  using In = httplib::Request;
  using Out = httplib::Response;

  Impl() {
    const Certificate certificate = *MakeCertificate("small.kubernetes", {"IP:127.0.0.1"});
    EXPECT_TRUE(WritePrivateFile(folder.File("cert"), certificate.pem).ok());
    EXPECT_TRUE(WritePrivateFile(folder.File("key"), certificate.key_pem).ok());
    EXPECT_TRUE(WritePrivateFile(folder.File("token"), "first-token\n").ok());
    server = std::make_unique<httplib::SSLServer>(folder.File("cert").c_str(),
                                                  folder.File("key").c_str());
    server->set_tcp_nodelay(true);
    server->set_pre_routing_handler([this](const In& in, Out& out) {
      return Admit(in, out) ? httplib::Server::HandlerResponse::Unhandled
                            : httplib::Server::HandlerResponse::Handled;
    });
    const auto route = [this](auto method, const std::string& path, auto handler) {
      (server.get()->*method)(path, [this, handler](const In& in, Out& out) {
        const std::lock_guard lock(mutex);
        Note(in);
        if (Fails(in, out)) return;
        (this->*handler)(in, out);
      });
    };
    using Server = httplib::Server;
    using Handler = Server::Handler;
    const auto get = static_cast<Server& (Server::*)(const std::string&, Handler)>(&Server::Get);
    const auto post = static_cast<Server& (Server::*)(const std::string&, Handler)>(&Server::Post);
    const auto put = static_cast<Server& (Server::*)(const std::string&, Handler)>(&Server::Put);
    const auto patch =
        static_cast<Server& (Server::*)(const std::string&, Handler)>(&Server::Patch);
    const auto del = static_cast<Server& (Server::*)(const std::string&, Handler)>(&Server::Delete);
    route(get, kPods, &Impl::ListPods);
    route(post, kPods, &Impl::MakePod);
    route(del, absl::StrCat(kPods, "/(.+)"), &Impl::DeletePod);
    route(patch, absl::StrCat(kSecrets, "/(.+)"), &Impl::PatchSecret);
    route(get, absl::StrCat(kLeases, "/(.+)"), &Impl::GetLease);
    route(post, kLeases, &Impl::MakeLease);
    route(put, absl::StrCat(kLeases, "/(.+)"), &Impl::PutLease);
    route(get, kJobs, &Impl::ListJobs);
    route(patch, absl::StrCat(kJobs, "/(.+)/status"), &Impl::PatchJobStatus);
    port = server->bind_to_any_port("127.0.0.1");
    thread = std::thread([this] { server->listen_after_bind(); });
    while (!server->is_running()) std::this_thread::yield();
  }
  ~Impl() {
    server->stop();
    thread.join();
  }

  bool Admit(const In& in, Out& out) {
    const std::lock_guard lock(mutex);
    if (in.get_header_value("Authorization") == "Bearer " + token) return true;
    Note(in);
    Say(out, 401, StatusOf(401, "Unauthorized", "Unauthorized"));
    return false;
  }
  void Note(const In& in) {
    requests.push_back({.method = in.method,
                        .path = Short(in.target),
                        .body = in.body,
                        .content_type = in.get_header_value("Content-Type")});
  }
  static bool Begins(const In& in, const std::string& beginning) {
    return absl::StrCat(in.method, " ", Short(in.target)).starts_with(beginning);
  }
  bool Fails(const In& in, Out& out) {
    for (auto& [beginning, fault] : faults) {
      if (!Begins(in, beginning) || fault.times == 0) continue;
      --fault.times;
      if (!fault.retry_after.empty()) out.set_header("Retry-After", fault.retry_after);
      Say(out, fault.code, StatusOf(fault.code, fault.message, fault.reason));
      return true;
    }
    return false;
  }
  static void Say(Out& out, int code, const Json& json) {
    out.status = code;
    out.set_content(json.dump(), "application/json");
  }

  void ListPods(const In& in, Out& out) {
    const std::string selector = in.get_param_value("labelSelector");
    const std::string after = in.get_param_value("continue");
    if (after.empty()) Bury();
    Json items = Json::array();
    Json metadata = {{"resourceVersion", absl::StrCat(version)}};
    for (const auto& [name, pod] : pods) {
      if (name <= after) continue;
      if (selector !=
          absl::StrCat("espalier.dev/pool=",
                       pod["metadata"]["labels"]["espalier.dev/pool"].get<std::string>())) {
        continue;
      }
      if (items.size() == page) {
        metadata["continue"] = items.back()["metadata"]["name"];
        break;
      }
      items.push_back(pod);
    }
    Say(out, 200, {{"kind", "PodList"}, {"metadata", metadata}, {"items", items}});
  }
  void Bury() {
    for (auto it = pods.begin(); it != pods.end();) {
      const bool deleted = it->second["metadata"].contains("deletionTimestamp");
      const bool gone = deleted && !keep_deleted && --lists_left[it->first] <= 0;
      it = gone ? pods.erase(it) : std::next(it);
    }
  }
  void MakePod(const In& in, Out& out) {
    Json pod = Json::parse(in.body);
    const std::string name = pod["metadata"]["name"];
    if (pods.contains(name)) {
      return Say(
          out, 409,
          StatusOf(409, absl::StrCat("pods \"", name, "\" already exists"), "AlreadyExists"));
    }
    pod["metadata"]["uid"] = absl::StrCat("uid-", ++version);
    pod["status"] = {{"phase", "Running"}};
    ++joined[pod["metadata"]["labels"]["espalier.dev/node"]];
    pods[name] = pod;
    Say(out, 201, pod);
  }
  void DeletePod(const In& in, Out& out) {
    const auto pod = pods.find(in.matches[1]);
    if (pod == pods.end()) return Say(out, 404, StatusOf(404, "pods not found", "NotFound"));
    const Json options = Json::parse(in.body);
    if (options["preconditions"]["uid"] != pod->second["metadata"]["uid"]) {
      return Say(out, 409, StatusOf(409, "the UID in the precondition does not match", "Conflict"));
    }
    if (options["gracePeriodSeconds"] == 0) {
      pods.erase(pod);
    } else {
      pod->second["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
      lists_left[pod->first] = kListsUntilGone;
    }
    Say(out, 200, Json::object());
  }
  void PatchSecret(const In& in, Out& out) {
    if (in.matches[1] != "espalier-join") {
      return Say(
          out, 404,
          StatusOf(404, absl::StrCat("secrets \"", std::string(in.matches[1]), "\" not found"),
                   "NotFound"));
    }
    secret.merge_patch(Json::parse(in.body));
    Say(out, 200, secret);
  }
  void GetLease(const In& in, Out& out) {
    const auto lease = leases.find(in.matches[1]);
    if (lease == leases.end()) return Say(out, 404, StatusOf(404, "leases not found", "NotFound"));
    Say(out, 200, lease->second);
  }
  void MakeLease(const In& in, Out& out) {
    Json lease = Json::parse(in.body);
    const std::string name = lease["metadata"]["name"];
    if (leases.contains(name)) {
      return Say(out, 409, StatusOf(409, "leases already exists", "AlreadyExists"));
    }
    lease["metadata"]["resourceVersion"] = absl::StrCat(++version);
    Say(out, 201, leases[name] = lease);
  }
  void PutLease(const In& in, Out& out) {
    Json lease = Json::parse(in.body);
    Json& there = leases[in.matches[1]];
    if (lease["metadata"]["resourceVersion"] != there["metadata"]["resourceVersion"]) {
      return Say(out, 409, StatusOf(409, "the object has been modified", "Conflict"));
    }
    lease["metadata"]["resourceVersion"] = absl::StrCat(++version);
    Say(out, 200, there = lease);
  }

  void ListJobs(const In& in, Out& out) {
    const std::string after = in.get_param_value("continue");
    Json items = Json::array();
    Json metadata = {{"resourceVersion", absl::StrCat(version)}};
    for (const auto& [name, job] : jobs) {
      if (name <= after) continue;
      if (items.size() == page) {
        metadata["continue"] = items.back()["metadata"]["name"];
        break;
      }
      items.push_back(job);
    }
    Say(out, 200, {{"kind", "AdaptDLJobList"}, {"metadata", metadata}, {"items", items}});
  }
  void PatchJobStatus(const In& in, Out& out) {
    const auto job = jobs.find(in.matches[1]);
    if (job == jobs.end()) return Say(out, 404, StatusOf(404, "adaptdljobs not found", "NotFound"));
    const Json patch = Json::parse(in.body);
    if (patch["metadata"]["resourceVersion"] != job->second["metadata"]["resourceVersion"]) {
      return Say(out, 409, StatusOf(409, "the object has been modified", "Conflict"));
    }
    job->second["status"].merge_patch(patch["status"]);
    job->second["metadata"]["resourceVersion"] = absl::StrCat(++version);
    Say(out, 200, job->second);
  }

  const ScratchFolder folder;
  std::unique_ptr<httplib::SSLServer> server;
  int port = 0;
  std::thread thread;

  mutable std::mutex mutex;  // guards what follows
  std::string token = "first-token";
  std::vector<Request> requests;
  std::map<std::string, Fault> faults;
  std::size_t page = 500;
  bool keep_deleted = false;
  int version = 0;
  std::map<std::string, Json> pods;  // by name
  std::map<std::string, int> lists_left;
  std::map<std::string, int> joined;
  std::map<std::string, Json> leases;
  std::map<std::string, Json> jobs;
  Json secret = Json::object();
};

SmallKubernetes::SmallKubernetes() : impl_(std::make_unique<Impl>()) {}
SmallKubernetes::~SmallKubernetes() = default;

ApiServer SmallKubernetes::server() const {
  return {.address = absl::StrCat("https://127.0.0.1:", impl_->port),
          .ca_file = impl_->folder.File("cert"),
          .token_file = impl_->folder.File("token"),
          .space = "lab"};
}

std::vector<SmallKubernetes::Request> SmallKubernetes::Requests(
    const std::string& beginning) const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<Request> found;
  for (const Request& request : impl_->requests) {
    if (absl::StrCat(request.method, " ", request.path).starts_with(beginning)) {
      found.push_back(request);
    }
  }
  return found;
}

void SmallKubernetes::SetFault(const std::string& beginning, const Fault& fault) {
  const std::lock_guard lock(impl_->mutex);
  impl_->faults[beginning] = fault;
}

void SmallKubernetes::TakeOnly(const std::string& token) {
  const std::lock_guard lock(impl_->mutex);
  impl_->token = token;
}

void SmallKubernetes::WriteToken(const std::string& token) {
  EXPECT_TRUE(WritePrivateFile(impl_->folder.File("token"), token + "\n").ok());
}

void SmallKubernetes::SetPage(std::size_t pods) {
  const std::lock_guard lock(impl_->mutex);
  impl_->page = pods;
}

void SmallKubernetes::SetStatus(const std::string& node, const std::string& status_json) {
  const std::lock_guard lock(impl_->mutex);
  for (auto& [name, pod] : impl_->pods) {
    if (pod["metadata"]["labels"]["espalier.dev/node"] == node) {
      pod["status"] = Json::parse(status_json);
    }
  }
}

void SmallKubernetes::PutJob(const std::string& name, const std::string& spec_json) {
  const std::lock_guard lock(impl_->mutex);
  Json& job = impl_->jobs[name];
  const std::string version = absl::StrCat(++impl_->version);
  if (job.is_null()) {
    job = {{"metadata",
            {{"name", name}, {"uid", absl::StrCat("00000", version, "-uid")}, {"generation", 0}}},
           {"status", Json::object()}};
  }
  job["spec"] = Json::parse(spec_json);
  job["metadata"]["generation"] = job["metadata"]["generation"].get<int>() + 1;
  job["metadata"]["resourceVersion"] = version;
}

void SmallKubernetes::DeleteJob(const std::string& name) {
  const std::lock_guard lock(impl_->mutex);
  impl_->jobs.erase(name);
}

std::string SmallKubernetes::JobStatus(const std::string& name) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->jobs.at(name)["status"].dump();
}

std::string SmallKubernetes::JobUid(const std::string& name) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->jobs.at(name)["metadata"]["uid"];
}

void SmallKubernetes::KeepDeleted() {
  const std::lock_guard lock(impl_->mutex);
  impl_->keep_deleted = true;
}

std::map<std::string, int> SmallKubernetes::Nodes() const {
  const std::lock_guard lock(impl_->mutex);
  std::map<std::string, int> nodes;
  for (const auto& [name, pod] : impl_->pods) {
    if (pod["metadata"].contains("deletionTimestamp")) continue;
    ++nodes[pod["metadata"]["labels"]["espalier.dev/node"]];
  }
  return nodes;
}

int SmallKubernetes::Joined(const std::string& node) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->joined[node];
}

std::string SmallKubernetes::Secret(const std::string& file) const {
  const std::lock_guard lock(impl_->mutex);
  std::string text;
  absl::Base64Unescape(impl_->secret["data"].value(file, ""), &text);
  return text;
}

}  // namespace espalier
