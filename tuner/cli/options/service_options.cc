#include "tuner/cli/options/service_options.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/environment.h"
#include "base/host_port.h"
#include "base/json/parse_json.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/options/command.h"

namespace espalier {

std::string ServiceFilePath(const std::string& directory) {
  return (std::filesystem::path(directory) / "service.json").string();
}

std::string DatabasePath(const std::string& directory) {
  return (std::filesystem::path(directory) / "espalier.db").string();
}

std::string TrialsPath(const std::string& directory) {
  return (std::filesystem::path(directory) / "trials").string();
}

absl::Status WriteServiceFile(const std::string& directory, const ServiceFile& file) {
  const nlohmann::ordered_json json = {
      {"grpc", file.grpc_address}, {"http", file.http_address}, {"needs_token", file.needs_token}};
  return WriteFile(ServiceFilePath(directory), json.dump(2) + "\n");
}

absl::StatusOr<ServiceFile> ReadServiceFile(const std::string& directory) {
  const std::string path = ServiceFilePath(directory);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    if (error) return absl::InvalidArgumentError("\"" + path + "\": " + error.message());
    return absl::UnavailableError("no tuner runs in \"" + directory + "\" (there is no " + path +
                                  "): start it with `tuner run STUDY.json --dir " + directory +
                                  "`");
  }
  ESPALIER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const nlohmann::json json = ParseJson(text);
  if (!json.is_object() || !json.contains("grpc") || !json["grpc"].is_string()) {
    return absl::InvalidArgumentError("\"" + path + "\" does not name a service; remove it");
  }
  const bool http = json.contains("http") && json["http"].is_string();
  // An earlier release does not say whether it needs a token: one that is there is shown.
  const auto needs_token = json.find("needs_token");
  const bool open =
      needs_token != json.end() && needs_token->is_boolean() && !needs_token->get<bool>();
  return ServiceFile{json["grpc"].get<std::string>(), http ? json["http"].get<std::string>() : "",
                     !open};
}

void ServiceArguments::AddTo(CliCommand& command) {
  CliOption& by_address =
      command.AddOption("--service", service,
                        "Service to talk to, HOST:PORT (default: ESPALIER_SERVICE, "
                        "then " +
                            std::string(kDefaultService) + ")");
  command.AddOption("--dir", directory, "Folder of a `tuner run` to talk to, while it runs")
      .Excludes(by_address);
  command.AddOption(
      "--token-file", token_file,
      "File with your token (default: ESPALIER_TOKEN_FILE). If the token ends in the hash of a "
      "certificate, the connection uses TLS and accepts only that certificate");
  command.AddOption(
      "--tls-ca", tls_ca,
      "PEM file of the certificates to trust, for a service with --tls-cert (default: "
      "ESPALIER_TLS_CA). Without it, and without a hash in the token, the connection is "
      "not encrypted");
}

void ServiceArguments::AddWithLocalRunTo(CliCommand& command) {
  AddTo(command);
  command.option("--dir").Describe(
      "Folder of a `tuner run` to talk to, while it runs (default, where no service answers: that "
      "of the study in espalier-runs, or the only one there that runs)");
}

bool ServiceArguments::named() const {
  return !service.empty() || !directory.empty() || !EnvironmentVariable("ESPALIER_SERVICE").empty();
}

std::string ServiceArguments::words() const {
  std::string words;
  for (const auto& [option, value] :
       {std::pair(" --service ", &service), std::pair(" --dir ", &directory),
        std::pair(" --token-file ", &token_file), std::pair(" --tls-ca ", &tls_ca)}) {
    if (!value->empty()) words += option + *value;
  }
  return words;
}

absl::StatusOr<ClientOptions> ServiceArguments::Resolve() const {
  ClientOptions options;
  bool by_environment = true;
  if (!service.empty()) {
    options.address = service;
  } else if (!directory.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(const ServiceFile file, ReadServiceFile(directory));
    options.address = file.grpc_address;
    by_environment = file.needs_token;
  } else if (const std::string named = EnvironmentVariable("ESPALIER_SERVICE"); !named.empty()) {
    options.address = named;
  }
  ESPALIER_RETURN_IF_ERROR(CheckServiceAddress("service", options.address));
  const auto read = [by_environment](auto reader, const std::string& given, const char* option,
                                     const char* variable) -> absl::StatusOr<std::string> {
    if (!given.empty()) return reader(given, option);
    const std::string file = by_environment ? EnvironmentVariable(variable) : "";
    if (file.empty()) return "";
    return reader(file, variable);
  };
  ESPALIER_ASSIGN_OR_RETURN(options.token,
                            read(ReadToken, token_file, "--token-file", "ESPALIER_TOKEN_FILE"));
  ESPALIER_ASSIGN_OR_RETURN(options.tls_roots,
                            read(ReadCertificates, tls_ca, "--tls-ca", "ESPALIER_TLS_CA"));
  return options;
}

}  // namespace espalier
