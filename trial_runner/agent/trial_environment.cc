#include "trial_runner/agent/trial_environment.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "trial_runner/agent/file_descriptor.h"
#include "trial_runner/agent/launch.h"
#include "tuner/base/nested_choice.h"

namespace espalier {
namespace {

using Variables = std::map<std::string, std::string>;

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": ", strerror(error)));
}

// By way of another name, so that a replica never reads half a file.
absl::Status WriteFile(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const FileDescriptor file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.open()) return CannotWrite(fresh, errno);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(file.get(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return CannotWrite(fresh, errno);
    done += static_cast<std::size_t>(wrote);
  }
  if (rename(fresh.c_str(), path.c_str()) != 0) return CannotWrite(path, errno);
  return absl::OkStatus();
}

absl::Status AddParameters(const std::string& parameters_json, Variables& variables) {
  const nlohmann::json parameters = nlohmann::json::parse(parameters_json, nullptr, false);
  if (!parameters.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot start the trial: its parameters should be one JSON object, got ",
                     parameters_json.substr(0, 200)));
  }
  ForEachParameter(parameters, [&](const std::string& name, const nlohmann::json& value) {
    variables[ParameterVariable(name)] =
        value.is_string() ? value.get<std::string>() : value.dump();
  });
  return absl::OkStatus();
}

void AddThreads(const AgentOptions& options, Variables& variables) {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const std::string share = absl::StrCat(std::max(1, cores / std::max(1, options.slots)));
  // Both yield to what the user has set; OMP_NUM_THREADS follows ESPALIER_THREADS.
  const auto threads = variables.emplace("ESPALIER_THREADS", share).first;
  variables.emplace("OMP_NUM_THREADS", threads->second);
}

void AddToolPath(const AgentOptions& options, Variables& variables) {
  const std::string folder = std::filesystem::path(options.tuner_executable).parent_path().string();
  if (folder.empty()) return;
  const auto path = variables.emplace("PATH", "/usr/local/bin:/usr/bin:/bin").first;
  path->second = absl::StrCat(folder, ":", path->second);
}

void AddGpu(const AgentOptions& options, int slot, Variables& variables) {
  variables.erase("ESPALIER_GPU_MEMORY_SHARE");
  if (const Gpu* gpu = GpuOfSlot(options, slot)) {
    variables["CUDA_VISIBLE_DEVICES"] = gpu->uuid;
    if (options.slots_per_gpu > 1) {
      variables["ESPALIER_GPU_MEMORY_SHARE"] = absl::StrCat(1.0 / options.slots_per_gpu);
    }
  } else if (options.hide_gpus) {
    variables["CUDA_VISIBLE_DEVICES"] = "";
  }
}

}  // namespace

const Gpu* GpuOfSlot(const AgentOptions& options, int slot) {
  if (options.gpus.empty() || slot < 0) return nullptr;
  return &options.gpus[static_cast<std::size_t>(slot) % options.gpus.size()];
}

std::string FolderName(const std::string& study) {
  std::string name;
  for (const char c : study) {
    if (c == '/' || c == '%' || c == '\0' || (c == '.' && name.empty())) {
      absl::StrAppendFormat(&name, "%%%02X", static_cast<unsigned char>(c));
    } else {
      name.push_back(c);
    }
  }
  return name.empty() ? "%" : name;
}

std::string TrialFolder(const std::string& directory, const std::string& study,
                        std::int64_t number) {
  return absl::StrCat(directory, "/", FolderName(study), "/trial-", number);
}

absl::StatusOr<TrialFiles> MakeTrialFiles(const AgentOptions& options,
                                          const v1::StartReplica& start) {
  TrialFiles files;
  files.directory = TrialFolder(options.directory, start.study(), start.trial_number());
  files.parameters = files.directory + "/parameters.json";
  files.checkpoints = files.directory + "/checkpoints";
  files.log = absl::StrCat(files.directory, "/replica-", start.replica_id(), ".log");
  std::error_code error;
  std::filesystem::create_directories(files.checkpoints, error);
  if (error) return CannotWrite(files.checkpoints, error.value());
  ESPALIER_RETURN_IF_ERROR(WriteFile(files.parameters, start.parameters_json()));
  return files;
}

std::string ParameterVariable(const std::string& name) {
  std::string variable = "ESPALIER_PARAM_";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    variable.push_back(absl::ascii_isalnum(byte) ? absl::ascii_toupper(byte) : '_');
  }
  return variable;
}

absl::StatusOr<Variables> TrialEnvironment(const Variables& inherited, const AgentOptions& options,
                                           std::int64_t node_id, const v1::StartReplica& start,
                                           const TrialFiles& files) {
  Variables variables = inherited;
  for (const auto& [name, value] : start.environment()) variables[name] = value;
  ESPALIER_RETURN_IF_ERROR(AddParameters(start.parameters_json(), variables));
  AddThreads(options, variables);
  AddGpu(options, start.slot(), variables);
  AddToolPath(options, variables);
  variables["ESPALIER_CONTROL_FD"] = absl::StrCat(kControlFd);
  variables["ESPALIER_TRIAL_ID"] = absl::StrCat(start.trial_id());
  variables["ESPALIER_TRIAL_NUMBER"] = absl::StrCat(start.trial_number());
  variables["ESPALIER_STUDY"] = start.study();
  variables["ESPALIER_REPLICA_ID"] = absl::StrCat(start.replica_id());
  variables["ESPALIER_PARAMETERS"] = files.parameters;
  variables["ESPALIER_CHECKPOINT_DIR"] = files.checkpoints;
  variables["ESPALIER_NODE_ID"] = absl::StrCat(node_id);
  variables["ESPALIER_SLOT"] = absl::StrCat(start.slot());
  variables["ESPALIER_SERVICE"] = options.service_address;
  // Absent means "none", so one inherited from an outer trial must not shine through.
  variables.erase("ESPALIER_CHECKPOINT");
  variables.erase("ESPALIER_HTTP");
  variables.erase("ESPALIER_REPLICA_LEASE");
  variables.erase("ESPALIER_SPARE");
  if (!start.checkpoint().empty()) variables["ESPALIER_CHECKPOINT"] = start.checkpoint();
  variables.erase("ESPALIER_TLS_CA");
  if (!options.tls_ca_file.empty()) variables["ESPALIER_TLS_CA"] = options.tls_ca_file;
  if (!options.token_file.empty()) variables["ESPALIER_TOKEN_FILE"] = options.token_file;
  if (!options.http_address.empty()) variables["ESPALIER_HTTP"] = options.http_address;
  if (options.replica_lease_s > 0) {
    variables["ESPALIER_REPLICA_LEASE"] = absl::StrCat(options.replica_lease_s);
  }
  if (options.spare_memory_bytes > 0) variables["ESPALIER_SPARE"] = "1";
  return variables;
}

Variables OwnEnvironment() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

}  // namespace espalier
