#pragma once

#include <string>

#include "base/status.h"

namespace espalier {

// The same error, about that file, option or variable; it has to be an error.
absl::Status Prefixed(const std::string& what, const absl::Status& status);

// Errors name the path and what is wrong with it (kInvalidArgument).
absl::StatusOr<std::string> ReadFile(const std::string& path);
// Writes beside the file and renames: a reader sees the old file or the new one.
absl::Status WriteFile(const std::string& path, const std::string& text);

// Whether nobody reads stdout any more, as after `| head`. That is the reader's choice and no
// error.
bool ReaderIsGone();

// Writes the file, or to stdout if the path is empty.
absl::Status WriteOut(const std::string& path, const std::string& text);

// The first line of the file; it must not be empty. `named_by` is the option or the variable that
// named the file, for the error.
absl::StatusOr<std::string> ReadToken(const std::string& path,
                                      const std::string& named_by = "--token-file");

// Reads a whole PEM file of certificates.
absl::StatusOr<std::string> ReadCertificates(const std::string& path,
                                             const std::string& named_by = "--tls-ca");

// Creates the directory with its parents; it must be writable.
absl::Status MakeDirectory(const std::string& path);

}  // namespace espalier
