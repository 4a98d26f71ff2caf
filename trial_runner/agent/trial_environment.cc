#include "trial_runner/agent/trial_environment.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/environment.h"
#include "base/json/command_words.h"
#include "base/json/parse_json.h"
#include "base/launch_kinds.h"
#include "base/launcher_variables.h"
#include "base/launchers.h"
#include "base/nested_choice.h"
#include "base/private_files.h"
#include "base/protocol.h"
#include "base/trial_folder.h"
#include "trial_runner/agent/processes/launch.h"
#include "tuner/credentials/access_token.h"

namespace espalier {
namespace {

using Variables = std::map<std::string, std::string>;

// Rounds for which a thread of OpenMP that has nothing to do looks again before it sleeps. With
// libgomp's own 300,000 threads that wait take the core of those that they wait for as soon as the
// machine has anything else to do. Chosen by `scripts/bench.sh busy_threads`: docs/pool.md.
constexpr const char* kSpinCount = "1000";

absl::Status AddParameters(const std::string& parameters_json, Variables& variables) {
  const nlohmann::json parameters = ParseJson(parameters_json, kMaxRecordDepth);
  if (!parameters.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot start the trial: its parameters should be one JSON object, got ",
                     parameters_json.substr(0, 200)));
  }
  std::map<std::string, int> named;
  ForEachParameter(parameters, [&](const std::string& name, const nlohmann::json& value) {
    const std::string variable = ParameterVariable(name);
    variables[variable] = value.is_string() ? value.get<std::string>() : value.dump();
    ++named[variable];
  });
  // One parameter must not be taken for another: the file has both.
  for (const auto& [variable, count] : named) {
    if (count > 1) variables.erase(variable);
  }
  return absl::OkStatus();
}

// Each process that a launcher starts inherits them and has one slot's part; a program without a
// launcher has the threads of all its slots, unless it is elastic (kOwnThreadsVariable).
void AddThreads(const AgentOptions& options, const v1::StartReplica& start, bool several,
                Variables& variables) {
  const int cores = options.cores * (several ? 1 : 1 + start.more_slots_size());
  const int slots = std::max(1, options.slots);
  variables.erase(kOwnThreadsVariable);
  if (start.more_slots_size() > 0 && !variables.contains("ESPALIER_THREADS")) {
    variables[kOwnThreadsVariable] = absl::StrCat(std::max(1, options.cores / slots));
  }
  // All yield to what the user has set; OMP_NUM_THREADS follows ESPALIER_THREADS.
  const auto threads =
      variables.emplace("ESPALIER_THREADS", absl::StrCat(std::max(1, cores / slots))).first;
  variables.emplace("OMP_NUM_THREADS", threads->second);
  if (!variables.contains("OMP_WAIT_POLICY")) variables.emplace("GOMP_SPINCOUNT", kSpinCount);
}

// Through a proxy for the web a trial would not reach its agent, nor its own processes one another.
void AddNoProxy(Variables& variables) {
  const auto is_proxy = [](const auto& variable) {
    return absl::EndsWithIgnoreCase(variable.first, "_proxy") && !variable.second.empty() &&
           !absl::EqualsIgnoreCase(variable.first, "no_proxy");
  };
  if (std::ranges::none_of(variables, is_proxy)) return;
  // Some programs read the one and some the other.
  const std::string all =
      absl::StrCat(variables["no_proxy"], ",", variables["NO_PROXY"], ",127.0.0.1,localhost,::1");
  std::vector<std::string> hosts;
  for (const auto& host : std::vector<std::string>(absl::StrSplit(all, ',', absl::SkipEmpty()))) {
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  }
  variables["no_proxy"] = variables["NO_PROXY"] = absl::StrJoin(hosts, ",");
}

void AddToolPath(const AgentOptions& options, Variables& variables) {
  const std::string folder = std::filesystem::path(options.tuner_executable).parent_path().string();
  if (folder.empty()) return;
  const auto path = variables.emplace("PATH", "/usr/local/bin:/usr/bin:/bin").first;
  path->second = absl::StrCat(folder, ":", path->second);
}

// An inherited address is another machine's, or of a trial that this agent runs in.
void AddNetwork(const AgentOptions& options, const HostAddress& host, Variables& variables) {
  variables[kHostAddressVariable] = host.address;
  variables.erase(kInterfaceVariable);
  variables.erase("ESPALIER_PORT_RANGE");
  if (!host.loopback()) variables[kInterfaceVariable] = host.interface;
  if (!options.ports.any()) variables["ESPALIER_PORT_RANGE"] = options.ports.text();
}

// What the replica shows to the service. The agent's port speaks in the clear, so the hash that
// says otherwise stays here. Empty: the agent's own file will do.
std::string TokenToShow(const AgentOptions& options, const ServiceAccess& access,
                        const v1::StartReplica& start) {
  if (!access.forwarded) return start.token();
  const std::string& token = start.token().empty() ? options.token : start.token();
  const std::string pin = PinOf(token);
  if (pin.empty()) return start.token();
  return token.substr(0, token.size() - pin.size() - 1);
}

// What a process takes of a GPU beside LibTorch's memory: CUDA's context, the kernels that are
// loaded, and what cuBLAS and cuDNN work in (0.5 to 0.7 GB on an H100, more with NCCL).
constexpr double kBesideLibTorch_bytes = 1 << 30;

// The share of a GPU's memory that LibTorch may allocate in each of its slots' processes.
double MemoryShare(const Gpu& gpu, int slots) {
  const auto total = static_cast<double>(gpu.memory_bytes);
  const double left = total - slots * kBesideLibTorch_bytes;
  // A GPU that does not tell its memory, or is this small, is divided evenly.
  return left < total / 2 ? 1.0 / slots : left / (slots * total);
}

// UUIDs name the same GPUs whatever a process sees and counts by, so that nobody gets another
// trial's; numbers, which some launchers insist on, are given only where they are CUDA's.
void NameGpus(const std::vector<const Gpu*>& gpus, bool by_number, Variables& variables) {
  const auto name = [by_number](std::string* out, const Gpu* gpu) {
    absl::StrAppend(out, by_number ? absl::StrCat(gpu->cuda_index) : gpu->uuid);
  };
  variables["CUDA_VISIBLE_DEVICES"] = absl::StrJoin(gpus, ",", name);
  if (by_number) variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
}

void AddGpus(const AgentOptions& options, const v1::StartReplica& start, const Launcher* launcher,
             Variables& variables) {
  variables.erase("ESPALIER_GPU_MEMORY_SHARE");
  variables.erase(kOwnGpuVariable);
  const std::vector<const Gpu*> gpus = GpusOf(options, start);
  if (!gpus.empty()) {
    const bool numbered =
        std::ranges::all_of(gpus, [](const Gpu* gpu) { return gpu->cuda_index >= 0; });
    NameGpus(gpus, numbered && launcher != nullptr && launcher->counts_gpus, variables);
    if (gpus.size() > 1) variables[kOwnGpuVariable] = gpus.front()->uuid;
    // Has torch.cuda.is_available() ask NVML: CUDA, once initialised, would show an elastic program
    // the GPUs of all slots for good. For all, so that they are forked from one zygote.
    variables.emplace("PYTORCH_NVML_BASED_CUDA_CHECK", "1");
    if (options.slots_per_gpu > 1) {
      variables["ESPALIER_GPU_MEMORY_SHARE"] =
          absl::StrCat(MemoryShare(*gpus.front(), options.slots_per_gpu));
    }
  } else if (options.hide_gpus) {
    variables["CUDA_VISIBLE_DEVICES"] = "";
  }
}

// Empty: the study names none.
std::string LauncherIn(const v1::StartReplica& start) {
  return start.launch().words().empty() ? "" : start.launch().words(0);
}

// Two trials on one machine must not meet at torchrun's fixed port. It reads these in place of its
// defaults, and knows better where it is told something of where to meet.
void AddRendezvous(const v1::StartReplica& start, Variables& variables) {
  const auto tells = [](const std::string& words) {
    const std::vector<std::string> each = absl::StrSplit(words, ' ');
    return std::ranges::any_of(each, [](const std::string& word) {
      return word.starts_with("--master") || word.starts_with("--rdzv") ||
             word.starts_with("--node");
    });
  };
  const auto is_of_torchrun = [](const auto& each) { return each.first.starts_with("PET_"); };
  if (std::ranges::any_of(start.command(), tells) ||
      std::ranges::any_of(variables, is_of_torchrun)) {
    return;
  }
  variables["PET_RDZV_BACKEND"] = "c10d";
  variables["PET_RDZV_ENDPOINT"] = "localhost:0";
  variables["PET_LOCAL_ADDR"] = "localhost";
}

absl::StatusOr<std::vector<std::string>> Filled(const std::vector<std::string>& words,
                                                const v1::StartReplica& start,
                                                const TrialFiles& files) {
  return FillCommand(words, {.parameters_json = start.parameters_json(),
                             .study = start.study(),
                             .number = start.trial_number(),
                             .seed = start.seed(),
                             .folder = files.directory,
                             .checkpoints = files.checkpoints});
}

}  // namespace

const Gpu* GpuOfSlot(const AgentOptions& options, int slot) {
  if (options.gpus.empty() || slot < 0) return nullptr;
  return &options.gpus[static_cast<std::size_t>(slot) % options.gpus.size()];
}

std::vector<const Gpu*> GpusOf(const AgentOptions& options, const v1::StartReplica& start) {
  std::vector<int> slots = {start.slot()};
  slots.insert(slots.end(), start.more_slots().begin(), start.more_slots().end());
  std::vector<const Gpu*> gpus;
  for (const int slot : slots) {
    const Gpu* gpu = GpuOfSlot(options, slot);
    if (gpu != nullptr && std::ranges::find(gpus, gpu) == gpus.end()) gpus.push_back(gpu);
  }
  return gpus;
}

absl::StatusOr<TrialFiles> MakeTrialFiles(const AgentOptions& options, const ServiceAccess& access,
                                          const v1::StartReplica& start) {
  TrialFiles files;
  files.directory = TrialFolder(options.directory, start.study(), start.trial_number());
  files.parameters = files.directory + "/parameters.json";
  const std::string& root =
      options.shared_directory.empty() ? options.directory : options.shared_directory;
  files.checkpoints = TrialFolder(root, start.study(), start.trial_number()) + "/checkpoints";
  files.log = absl::StrCat(files.directory, "/replica-", start.replica_id(), ".log");
  ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(files.directory));
  ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(files.checkpoints));
  ESPALIER_RETURN_IF_ERROR(WritePrivateFile(files.parameters, start.parameters_json()));
  if (const std::string token = TokenToShow(options, access, start); !token.empty()) {
    files.token = absl::StrCat(files.directory, "/replica-", start.replica_id(), ".token");
    ESPALIER_RETURN_IF_ERROR(WritePrivateFile(files.token, token + "\n"));
  }
  return files;
}

absl::StatusOr<std::vector<std::string>> TrialCommand(const v1::StartReplica& start,
                                                      const TrialFiles& files) {
  return Filled({start.command().begin(), start.command().end()}, start, files);
}

absl::StatusOr<v1::StartReplica> WithPathsOf(const TrialFiles& files, v1::StartReplica start) {
  if (!start.has_file_metric()) return start;
  // The first word of a command stays as it is.
  const std::string& path = start.file_metric().path();
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<std::string> words, Filled({"", path}, start, files));
  if (words.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the path of its values, \"", path, "\", names a parameter that the trial does not have"));
  }
  const std::filesystem::path folder = std::filesystem::absolute(files.directory);
  start.mutable_file_metric()->set_path((folder / words[1]).lexically_normal().string());
  return start;
}

absl::StatusOr<Variables> TrialEnvironment(const Variables& inherited, const AgentOptions& options,
                                           const ServiceAccess& access, std::int64_t node_id,
                                           const HostAddress& host, const v1::StartReplica& start,
                                           const TrialFiles& files) {
  Variables variables = inherited;
  variables.erase(kLastStepVariable);  // of a trial that this agent runs in
  // Of the job that this agent runs in, which is not the trial's; unlike what its study sets.
  std::erase_if(variables, [](const auto& variable) { return IsOfALauncher(variable.first); });
  for (const auto& [name, value] : start.environment()) variables[name] = value;
  AddNoProxy(variables);
  ESPALIER_RETURN_IF_ERROR(AddParameters(start.parameters_json(), variables));
  const Launcher* const launcher = LauncherOf({start.command().begin(), start.command().end()});
  AddThreads(options, start, launcher != nullptr || start.has_launch(), variables);
  AddGpus(options, start, launcher, variables);
  if (!start.has_launch()) AddRendezvous(start, variables);
  // Into a file Python would print only now and then, and values are to be read at once.
  if (start.has_output_metric()) variables.emplace("PYTHONUNBUFFERED", "1");
  AddToolPath(options, variables);
  AddNetwork(options, host, variables);
  variables["ESPALIER_CONTROL_FD"] = absl::StrCat(kControlFd);
  variables["ESPALIER_TRIAL_ID"] = absl::StrCat(start.trial_id());
  variables["ESPALIER_TRIAL_NUMBER"] = absl::StrCat(start.trial_number());
  variables["ESPALIER_STUDY"] = start.study();
  variables["ESPALIER_REPLICA_ID"] = absl::StrCat(start.replica_id());
  variables["ESPALIER_PARAMETERS"] = files.parameters;
  variables["ESPALIER_CHECKPOINT_DIR"] = files.checkpoints;
  variables["ESPALIER_NODE_ID"] = absl::StrCat(node_id);
  variables["ESPALIER_SLOT"] = absl::StrCat(start.slot());
  variables["ESPALIER_SLOTS"] = absl::StrCat(1 + start.more_slots_size());
  variables["ESPALIER_SERVICE"] = access.service;
  variables[kProtocolVariable] = ProtocolText();
  // Absent means "none", so one inherited from an outer trial must not shine through.
  variables.erase("ESPALIER_CHECKPOINT");
  variables.erase("ESPALIER_HTTP");
  variables.erase("ESPALIER_REPLICA_LEASE");
  variables.erase("ESPALIER_SPARE");
  variables.erase("ESPALIER_JOINS");
  variables.erase(kZygoteVariable);
  // That a folder has files of the program's own is known by a path that ends so.
  if (!start.checkpoint().empty() && !start.checkpoint().ends_with('/')) {
    variables["ESPALIER_CHECKPOINT"] = start.checkpoint();
  }
  variables.erase("ESPALIER_TLS_CA");
  if (!access.tls_ca_file.empty()) variables["ESPALIER_TLS_CA"] = access.tls_ca_file;
  const std::string& token_file = files.token.empty() ? options.token_file : files.token;
  if (!token_file.empty()) variables["ESPALIER_TOKEN_FILE"] = token_file;
  if (!access.http.empty()) variables["ESPALIER_HTTP"] = access.http;
  if (options.replica_lease_s > 0) {
    variables["ESPALIER_REPLICA_LEASE"] = absl::StrCat(options.replica_lease_s);
  }
  if (start.joins() > 0) variables["ESPALIER_JOINS"] = absl::StrCat(start.joins());
  if (options.spare_memory_bytes > 0) variables["ESPALIER_SPARE"] = "1";
  // Ranks are no elastic replicas: they speak over HTTP, and each may use what its launcher says.
  if (start.has_launch()) {
    for (const char* const name : {"ESPALIER_CONTROL_FD", kOwnGpuVariable, kOwnThreadsVariable}) {
      variables.erase(name);
    }
    const LaunchKind* const kind = FindLaunchKind(LauncherIn(start));
    if (kind != nullptr && kind->cpu_variable != nullptr && GpusOf(options, start).empty()) {
      variables.emplace(kind->cpu_variable, "true");
    }
  }
  return variables;
}

}  // namespace espalier
