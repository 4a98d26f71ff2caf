#pragma once

#include <string>

#include "absl/status/status.h"

namespace espalier {

// Files and folders that only this user can access, whatever the umask allows. Errors name the path
// and the system's reason.

// Makes a folder and what is missing above it with mode 0700. What is there already stays as it is.
absl::Status MakePrivateFolders(const std::string& path);

// The same for a folder that has to be found again: once this has returned OK, a loss of power
// leaves it and all above it.
absl::Status KeepPrivateFolders(const std::string& path);

// Writes a file of mode 0600, by way of another name: no reader ever sees half of it.
absl::Status WritePrivateFile(const std::string& path, const std::string& text);

// The same for what cannot be made again, such as a key: once this has returned OK, a loss of power
// leaves the file and its name in the folder, which has to be a kept one itself.
absl::Status KeepPrivateFile(const std::string& path, const std::string& text);

// What is in a file; empty where it cannot be read, or not any more: what is in /proc goes with its
// process, between two reads as well.
std::string TextOfFile(const std::string& path);

}  // namespace espalier
