#include "tuner/base/machine.h"

#include <fstream>

namespace espalier {

std::string MachineId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace espalier
