#include "tests/server/engines/small_kubernetes.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/private_files.h"
#include "tuner/credentials/certificate.h"

namespace espalier {

namespace {

using Json = nlohmann::json;

// small_scripted.py, which ends when its input does: at the latest with this process.
class Script {
 public:
  Script() {
    const Certificate certificate = *MakeCertificate("small.kubernetes", {"IP:127.0.0.1"});
    std::array<std::string, 4> words = {ESPALIER_PYTHON, ESPALIER_SMALL_KUBERNETES,
                                        certificate_file(), folder_.File("key")};
    ESPALIER_CHECK(WritePrivateFile(words[2], certificate.pem).ok() &&
                       WritePrivateFile(words[3], certificate.key_pem).ok(),
                   "cannot write to " + folder_.path());
    std::array<int, 2> sockets{};
    ESPALIER_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) == 0,
                   "no sockets");
    socket_ = sockets[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, sockets[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, sockets[1], STDOUT_FILENO);
    std::array<char*, 5> arguments = {words[0].data(), words[1].data(), words[2].data(),
                                      words[3].data(), nullptr};
    ESPALIER_CHECK(
        posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) == 0,
        "cannot start " + words[0]);
    posix_spawn_file_actions_destroy(&actions);
    close(sockets[1]);
  }
  ~Script() {
    close(socket_);
    waitpid(pid_, nullptr, 0);
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  std::string certificate_file() const { return folder_.File("certificate"); }

  // The answer to a command with its arguments.
  Json Do(const Json& command) const {
    const std::string line = command.dump() + "\n";
    const ssize_t sent = send(socket_, line.data(), line.size(), MSG_NOSIGNAL);
    std::string answer;
    while (sent == static_cast<ssize_t>(line.size()) && !answer.ends_with('\n')) {
      std::array<char, 65536> part{};
      const ssize_t got = read(socket_, part.data(), part.size());
      if (got <= 0) break;
      answer.append(part.data(), static_cast<std::size_t>(got));
    }
    ESPALIER_CHECK(answer.ends_with('\n'), "the small API server has ended at " + line);
    return Json::parse(answer);
  }

 private:
  const ScratchFolder folder_;
  int socket_ = -1;
  pid_t pid_ = -1;
};

const Script& TheScript() {
  static const Script script;
  return script;
}

template <typename... Arguments>
Json Do(const char* command, const Arguments&... arguments) {
  return TheScript().Do(Json::array({command, arguments...}));
}

std::string PathOf(const std::string& manifest) {
  return absl::StrCat(ESPALIER_MANIFESTS, "/", manifest);
}

}  // namespace

SmallKubernetes::SmallKubernetes() {
  const Json made = Do("open");
  namespace_ = made["namespace"];
  port_ = made["port"];
  WriteToken(made["token"]);
}

SmallKubernetes::~SmallKubernetes() { Do("close", namespace_); }

ApiServer SmallKubernetes::server() const {
  return {.address = absl::StrCat("https://127.0.0.1:", port_),
          .ca_file = TheScript().certificate_file(),
          .token_file = folder_.File("token"),
          .space = namespace_};
}

void SmallKubernetes::Apply(const std::string& manifest) { Do("apply", PathOf(manifest)); }

void SmallKubernetes::Remove(const std::string& manifest) { Do("remove", PathOf(manifest)); }

std::string SmallKubernetes::Ask(const ApiCall& call) {
  const std::string path = absl::StrCat(call.group.empty() ? "/api/v1" : "/apis/" + call.group,
                                        "/namespaces/", namespace_, call.path);
  return Do("ask", call.method, path, call.body.empty() ? Json() : Json::parse(call.body)).dump();
}

std::vector<SmallKubernetes::Request> SmallKubernetes::Requests(const std::string& beginning,
                                                                std::size_t at_least) const {
  std::vector<Request> found;
  for (const Json& request : Do("requests", namespace_, beginning, at_least)) {
    found.push_back({.method = request["method"],
                     .path = request["path"],
                     .body = request["body"],
                     .content_type = request["content_type"]});
  }
  return found;
}

void SmallKubernetes::SetFault(const std::string& beginning, const Fault& fault) {
  Json headers = Json::object();
  if (!fault.retry_after.empty()) headers["Retry-After"] = fault.retry_after;
  Do("fail", namespace_, beginning,
     Json{{"code", fault.code},
          {"message", fault.message},
          {"reason", fault.reason},
          {"headers", headers},
          {"times", fault.times}});
}

void SmallKubernetes::SetPage(int objects) { Do("set_page", namespace_, objects); }

std::string SmallKubernetes::ExchangeToken() { return Do("exchange_token", namespace_); }

void SmallKubernetes::WriteToken(const std::string& token) {
  ESPALIER_CHECK(WritePrivateFile(folder_.File("token"), token + "\n").ok(),
                 "cannot write to " + folder_.path());
}

void SmallKubernetes::LoseMachine() { Do("lose_machine", namespace_); }

void SmallKubernetes::SetStatus(const std::string& node, const std::string& status_json) {
  Do("set_status", namespace_, node, Json::parse(status_json));
}

bool SmallKubernetes::Runs(const std::string& node, double within_s) const {
  return Do("runs", namespace_, node, within_s);
}

std::map<std::string, int> SmallKubernetes::Nodes() const { return Do("nodes", namespace_); }

int SmallKubernetes::Joined(const std::string& node) const {
  return Do("joined", namespace_, node);
}

}  // namespace espalier
