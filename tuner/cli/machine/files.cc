#include "tuner/cli/machine/files.h"

#include <poll.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/private_files.h"

namespace espalier {

absl::Status Prefixed(const std::string& what, const absl::Status& status) {
  return {status.code(), what + ": " + std::string(status.message())};
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError("cannot read \"" + path + "\": it is a directory");
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf() || in.peek() == std::ifstream::traits_type::eof())) {
    return absl::InvalidArgumentError("cannot read \"" + path + "\": " + std::strerror(errno));
  }
  return text.str();
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::error_code error;
  // A pipe or a device is written as it is.
  const bool special =
      std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
  const std::string target = special ? path : path + ".part";
  std::ofstream out(target, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) {
    return absl::InvalidArgumentError("cannot write \"" + path + "\": " + std::strerror(errno) +
                                      "; name a file in a directory that can be written");
  }
  if (!special) std::filesystem::rename(target, path, error);
  if (error) return absl::InvalidArgumentError("cannot write \"" + path + "\": " + error.message());
  return absl::OkStatus();
}

bool ReaderIsGone() {
  pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

absl::Status WriteOut(const std::string& path, const std::string& text) {
  if (!path.empty()) return WriteFile(path, text);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if ((!written || std::fflush(stdout) != 0) && !ReaderIsGone()) {
    const std::string why = std::strerror(errno);
    // What could not be written would be found at the end, and told once more.
    __fpurge(stdout);
    std::clearerr(stdout);
    return absl::InternalError("cannot write to stdout: " + why);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadToken(const std::string& path, const std::string& named_by) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return Prefixed(named_by, text.status());
  const std::string token = text->substr(0, text->find_first_of("\r\n"));
  if (token.empty()) {
    return absl::InvalidArgumentError(named_by + ": the first line of \"" + path +
                                      "\" is empty; it must hold the token");
  }
  return token;
}

absl::StatusOr<std::string> ReadCertificates(const std::string& path, const std::string& named_by) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return Prefixed(named_by, text.status());
  if (text->find("-----BEGIN CERTIFICATE-----") != std::string::npos) return text;
  return absl::InvalidArgumentError(named_by + ": \"" + path +
                                    "\" has no certificate: it must be a PEM file, with "
                                    "-----BEGIN CERTIFICATE-----");
}

absl::Status MakeDirectory(const std::string& path) {
  if (const absl::Status made = MakePrivateFolders(path); !made.ok()) {
    return absl::InvalidArgumentError("cannot create the directory \"" + path + "\": " +
                                      std::string(made.message()) + "; choose another with --dir");
  }
  if (access(path.c_str(), W_OK | X_OK) != 0) {
    return absl::InvalidArgumentError("cannot write to the directory \"" + path + "\": " +
                                      std::strerror(errno) + "; choose another with --dir");
  }
  return absl::OkStatus();
}

}  // namespace espalier
