#include "tuner/server/engines/reconciling_engine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/private_files.h"
#include "spdlog/spdlog.h"
#include "tuner/credentials/hexadecimal.h"

namespace espalier {

namespace {

constexpr const char* kIdFile = "pool.id";
constexpr const char* kTokenFile = "join.token";
constexpr std::size_t kIdBytes = 4;
constexpr std::size_t kAddressDigits = 6;
constexpr double kPaceGrowth = 1.5;
constexpr double kStopPace_s = 0.5;
constexpr double kForgetTrouble_s = 120;  // that requests had, once nothing is wanted
constexpr int kLeastInVain = 2;  // lists that fail before people are told: a moment is no trouble

// The id of the pool whose nodes are in the folder: the one that it had, else a new one.
std::string IdIn(const NodeDirectory& directory) {
  const std::string path = directory.Of(kIdFile);
  std::string id = TextOfFile(path);
  if (IsHexadecimal(id, 2 * kIdBytes)) return id;
  id = RandomHexadecimal(kIdBytes);
  if (const absl::Status written = KeepPrivateFile(path, id); !written.ok()) {
    spdlog::error("event=engine_id_not_kept error=\"{}\"", std::string(written.message()));
  }
  return id;
}

std::string Quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  return text;
}

}  // namespace

ReconcilingEngine::ReconcilingEngine(std::unique_ptr<MachineProvider> provider, NodeAgents agents,
                                     NodeDirectory directory, MachineTimes times, LookTimes look)
    : provider_(std::move(provider)),
      capabilities_(provider_->capabilities()),
      agents_(std::move(agents)),
      directory_(std::move(directory)),
      times_(times),
      look_(look) {}

ReconcilingEngine::~ReconcilingEngine() { Stop(); }

void ReconcilingEngine::Open(const std::string& grpc_address, const std::string& http_address) {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable() || stopping_) return;
  grpc_address_ = grpc_address;
  http_address_ = http_address;
  family_ = absl::StrCat("espalier.", IdIn(directory_), ".");
  book_ = std::make_unique<MachineBook>(
      absl::StrCat(family_, HashOf(grpc_address).substr(0, kAddressDigits)), times_,
      [] { return RandomHexadecimal(kIdBytes); });
  for (const std::string& name : std::exchange(wanted_before_, {})) book_->Want(name);
  for (const std::string& name : std::exchange(joined_before_, {})) book_->Joined(name);
  thread_ = std::thread([this] { Run(); });
}

void ReconcilingEngine::StartNode(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  book_ ? book_->Want(name) : static_cast<void>(wanted_before_.insert(name));
  woken_ = true;
  wake_.notify_all();
}

void ReconcilingEngine::ReleaseNode(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  book_ ? book_->Release(name) : static_cast<void>(wanted_before_.erase(name));
  woken_ = true;
  wake_.notify_all();
}

void ReconcilingEngine::NodeJoined(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  book_ ? book_->Joined(name) : static_cast<void>(joined_before_.insert(name));
  woken_ = true;
  wake_.notify_all();
}

std::vector<std::string> ReconcilingEngine::Troubles() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& [what, problem] : troubles_) lines.push_back("engine: " + problem);
  return lines;
}

void ReconcilingEngine::Stop() { End(/*with_machines=*/true); }
void ReconcilingEngine::Leave() { End(/*with_machines=*/false); }

void ReconcilingEngine::End(bool with_machines) {
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) stopping_since_ = Now();
    stopping_ = true;
    leaving_ = !with_machines;
    wanted_before_.clear();
    if (book_ && with_machines) book_->ReleaseAll();
    thread = std::move(thread_);
    woken_ = true;
  }
  wake_.notify_all();
  if (thread.joinable()) thread.join();
}

void ReconcilingEngine::Run() {
  while (true) {
    const Pace pace = LookOnce();
    std::unique_lock lock(mutex_);
    double next_s = pace.next_s;
    if (stopping_) {
      if (pace.empty || leaving_) return;
      const double waited_s = SecondsBetween(stopping_since_, Now());
      if (waited_s >= MostStop_s()) {
        spdlog::error("event=engine_left_machines prefix=\"{}\" waited_s={:.0f}", family_,
                      waited_s);
        return;
      }
      next_s = std::min(next_s, kStopPace_s);
    }
    wake_.wait_for(lock, std::chrono::duration<double>(next_s), [this] { return woken_; });
    if (woken_) pace_s_ = 0;
    woken_ = false;
  }
}

// Where it does not even know of a machine there is nothing to wait for.
double ReconcilingEngine::MostStop_s() const {
  if (in_vain_ == 0) return look_.stop_s;
  return had_machines_ ? look_.stop_in_vain_s : 0;
}

// Each question may take as long as a provider takes that does not answer, and there may be many.
bool ReconcilingEngine::StopIsOver() const {
  const std::lock_guard lock(mutex_);
  return stopping_ && (leaving_ || SecondsBetween(stopping_since_, Now()) >= look_.stop_s);
}

ReconcilingEngine::Pace ReconcilingEngine::LookOnce() {
  pace_s_ = std::clamp(pace_s_ * kPaceGrowth, look_.first_s, look_.most_s);
  if (!prepared_) {
    const absl::Status prepared = Prepare();
    Note("token", prepared.ok() ? "" : std::string(prepared.message()));
    if (!prepared.ok()) return {.next_s = pace_s_};
    prepared_ = true;
  }
  const absl::StatusOr<std::vector<Machine>> there = provider_->List(family_);
  in_vain_ = there.ok() ? 0 : in_vain_ + 1;
  if (there.ok()) {
    Note("list", "");
  } else if (in_vain_ >= kLeastInVain) {
    Note("list", absl::StrCat("what there is cannot be told, so that nothing is started or ended: ",
                              there.status().message()));
  }
  if (!there.ok()) return {.next_s = pace_s_};
  for (const Machine& machine : *there) unlisted_.erase(machine.key);
  std::erase_if(unlisted_, [this](const auto& request) {
    return SecondsBetween(request.second, Now()) >= times_.settle_s;
  });
  had_machines_ = had_machines_ || !there->empty();
  MachineBook::Steps steps;
  bool wants_any = false;
  {
    const std::lock_guard lock(mutex_);
    steps = book_->Look(Now(), *there);
    wants_any = book_->wants_any();
  }
  Tell(steps);
  Perform(steps);
  NoteNodes();
  if (wants_any) {
    nothing_wanted_since_.reset();
  } else if (!nothing_wanted_since_) {
    nothing_wanted_since_ = Now();
  }
  // A node that does not come is given up and wanted again: its trouble is the same one.
  const bool no_trouble = nothing_wanted_since_
                              ? SecondsBetween(*nothing_wanted_since_, Now()) >= kForgetTrouble_s
                              : steps.complete;
  if (no_trouble) Note("request", "");
  if (steps.settled) Note("release", "");
  if (!steps.settled) return {.next_s = pace_s_};
  if (wants_any) return {.next_s = look_.most_s};
  if (!unlisted_.empty()) return {.next_s = pace_s_};
  return {.next_s = look_.idle_s, .empty = true};
}

void ReconcilingEngine::Perform(const MachineBook::Steps& steps) {
  std::string not_released;
  for (const auto& [machine, leave] : steps.releases) {
    if (StopIsOver()) return;
    const absl::Status released = provider_->Release(machine, leave);
    if (!released.ok()) {
      not_released = absl::StrCat("machine ", machine.id, " (", machine.key,
                                  ") cannot be given back: ", released.message());
    }
  }
  if (!steps.releases.empty()) Note("release", not_released);
  for (const MachineBook::Order& order : steps.requests) {
    if (StopIsOver()) return;
    const absl::Status requested = provider_->Request(OrderOf(order));
    unlisted_[order.key] = Now();
    had_machines_ = true;
    spdlog::info("event=machine_requested node=\"{}\" key=\"{}\" ok={}", order.node, order.key,
                 requested.ok());
    Note("request",
         requested.ok() ? "" : absl::StrCat("no more nodes are to be had: ", requested.message()));
    const std::lock_guard lock(mutex_);
    book_->Requested(order.key, Now(), requested);
    if (!requested.ok()) return;
  }
}

void ReconcilingEngine::Tell(const MachineBook::Steps& steps) const {
  for (const auto& [node, machine] : steps.taken_over) {
    spdlog::info("event=machine_taken_over node=\"{}\" id=\"{}\" key=\"{}\"", node, machine.id,
                 machine.key);
  }
  for (const auto& [node, machine] : steps.ended) {
    spdlog::warn("event=machine_ended node=\"{}\" id=\"{}\" key=\"{}\" reason=\"{}\"", node,
                 machine.id, machine.key, Quoted(machine.reason));
  }
  for (const std::string& key : steps.lost) {
    spdlog::warn("event=machine_request_lost key=\"{}\"", key);
  }
  for (const auto& [machine, leave] : steps.releases) {
    spdlog::info("event=machine_released id=\"{}\" key=\"{}\" now={}", machine.id, machine.key,
                 leave == Leave::kNow);
  }
}

// What agents need before they start: their token, where they find it.
absl::Status ReconcilingEngine::Prepare() {
  if (agents_.token_file.empty()) return absl::OkStatus();
  const std::string token = TextOfFile(agents_.token_file);
  if (token.empty()) {
    return absl::UnavailableError(
        absl::StrCat("the token for agents, ", agents_.token_file, ", cannot be read"));
  }
  return agents_.paths ? absl::OkStatus() : WritePrivateFile(directory_.Of(kTokenFile), token);
}

MachineOrder ReconcilingEngine::OrderOf(const MachineBook::Order& order) const {
  const std::string here = directory_.Of(order.node);
  MachineOrder full{
      .key = order.key, .node = order.node, .command = {}, .log = here + "/agent.log"};
  NodeAgents there = agents_;
  if (agents_.paths) {
    full.token_file = agents_.token_file;
    full.tls_ca_file = agents_.tls_ca_file;
    if (!agents_.token_file.empty()) there.token_file = agents_.paths->token_file;
    if (!agents_.tls_ca_file.empty()) there.tls_ca_file = agents_.paths->tls_ca_file;
  } else {
    if (!agents_.token_file.empty()) there.token_file = directory_.Of(kTokenFile);
    if (const absl::Status made = MakePrivateFolders(here); !made.ok()) {
      spdlog::error("event=node_folder_not_made error=\"{}\"", std::string(made.message()));
    }
  }
  full.command = std::vector<std::string>{
      agents_.executable, "agent",    "--join", grpc_address_,
      "--name",           order.node, "--dir",  agents_.paths ? agents_.paths->directory : here};
  const auto add = [&full](const std::vector<std::string>& words) {
    full.command.insert(full.command.end(), words.begin(), words.end());
  };
  if (!http_address_.empty()) add({"--http", http_address_});
  add(AgentArguments(there));
  return full;
}

void ReconcilingEngine::Note(const std::string& what, const std::string& problem) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = troubles_.find(what);
    const bool had = known != troubles_.end();
    if (problem.empty() ? !had : had && known->second == problem) return;
    problem.empty() ? static_cast<void>(troubles_.erase(known))
                    : static_cast<void>(troubles_[what] = problem);
  }
  if (problem.empty()) {
    spdlog::info("event=engine_trouble_over what=\"{}\"", what);
  } else {
    spdlog::warn("event=engine_trouble text=\"{}\"", Quoted(problem));
  }
}

// Why nodes wait, a line for each reason; and machines that are held, and perhaps paid for, in
// vain.
void ReconcilingEngine::NoteNodes() {
  std::map<std::string, std::string> problems;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [node, reason] : book_->reasons()) {
      problems["waiting, " + reason] = "nodes wait: " + reason;
    }
    for (const auto& [node, machine] : book_->silent()) {
      problems["silent, " + node] =
          absl::StrCat("node ", node, " runs (machine ", machine.id,
                       machine.host.empty() ? "" : ", on " + machine.host,
                       "), but its agent does not join: can it reach ", grpc_address_, "?",
                       agents_.paths ? "" : " It writes " + directory_.Of(node) + "/agent.log");
    }
  }
  for (const auto& [what, problem] : problems) Note(what, problem);
  for (const std::string& what : told_of_nodes_) {
    if (!problems.contains(what)) Note(what, "");
  }
  told_of_nodes_.clear();
  for (const auto& [what, problem] : problems) told_of_nodes_.insert(what);
}

}  // namespace espalier
