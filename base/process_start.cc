#include "base/process_start.h"

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace espalier {

std::string ProcessStart(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const std::size_t name_ends = line.rfind(')');  // the name itself may hold anything
  if (name_ends == std::string::npos) return "";
  std::istringstream fields(line.substr(name_ends + 1));
  std::string field;
  constexpr int kStartField = 20;  // after the name
  for (int i = 0; i < kStartField; ++i) fields >> field;
  return fields ? field : "";
}

}  // namespace espalier
