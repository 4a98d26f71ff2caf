#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

// The command line of an example: `--name value` pairs, besides --set, which espalier::Trial reads.
// Anything else ends the program with exit code 2 and the list of what there is.
class Flags {
 public:
  // `values` are the flags with their defaults.
  Flags(int argc, char** argv, std::map<std::string, std::string> values)
      : program_(argv[0]), values_(std::move(values)) {
    program_.erase(0, program_.rfind('/') + 1);
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      const auto flag = values_.find(name);
      if (i + 1 == argc || (flag == values_.end() && name != "--set")) EndWithFlags(name);
      if (flag != values_.end()) flag->second = argv[i + 1];
    }
  }

  const std::string& Text(const std::string& name) const { return values_.at(name); }

  // A whole number from `least` on.
  std::int64_t Count(const std::string& name, std::int64_t least) const {
    const std::string& text = values_.at(name);
    char* end = nullptr;
    const std::int64_t count = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || count < least) {
      End(name + " " + text + ": want a whole number from " + std::to_string(least) + " on");
    }
    return count;
  }

 private:
  [[noreturn]] void EndWithFlags(const std::string& name) const {
    std::string known = "--set NAME=VALUE";
    for (const auto& [each, otherwise] : values_) {
      known.append(", ").append(each).append(" (").append(otherwise).append(")");
    }
    End(name + ": want pairs of " + known);
  }

  [[noreturn]] void End(const std::string& message) const {
    std::fprintf(stderr, "%s: %s\n", program_.c_str(), message.c_str());
    std::exit(2);
  }

  std::string program_;
  std::map<std::string, std::string> values_;
};
