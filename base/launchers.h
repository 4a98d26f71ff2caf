#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// A program that starts the processes of a trial by itself, usually one for each GPU that it sees.
struct Launcher {
  std::string_view name;
  // Also started as `python -m MODULE`.
  std::vector<std::string_view> modules{};
  // Takes numbers alone in CUDA_VISIBLE_DEVICES, and no UUIDs.
  bool counts_gpus = false;
};

const std::vector<Launcher>& Launchers();

// The launcher that a command names in one of its words, as a shell's script in a word does too.
// nullptr: none that we know. What a command does beyond its words is not looked at.
const Launcher* LauncherOf(const std::vector<std::string>& command);

}  // namespace espalier
