#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace espalier {

// One GPU of this machine.
struct Gpu {
  // Among those that processes can use, by place on the bus: NVML's, where none is divided (MIG).
  int index = 0;
  std::string name;  // its type, such as "NVIDIA H200"
  std::string uuid;
  std::int64_t memory_bytes = 0;  // 0: it has none of its own
  std::string trouble;            // why it cannot be used; empty: it can
  std::vector<int> near_cpus{};   // those on its side of the machine; none: it does not tell
  // CUDA's number of it where CUDA counts by place on the bus (CUDA_DEVICE_ORDER=PCI_BUS_ID); -1:
  // not known, as where a GPU of the machine is divided or does not answer.
  int cuda_index = -1;

  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// The machine's GPUs by NVML (NVIDIA Management Library API reference), which comes with the driver
// and is loaded when it is needed: nothing of it is there when we build. It is held only while it
// is looked at. Calls may take seconds when a device is in trouble. One thread at a time.
class GpuDriver {
 public:
  // nullptr: this machine has no driver. Fails if it has one that does not work.
  static absl::StatusOr<std::unique_ptr<GpuDriver>> Open();
  virtual ~GpuDriver() = default;

  // All GPUs as they are now. One that answers a question with an error says so in `trouble`, and
  // has what it did answer. Fails if the driver does not even tell how many there are.
  virtual absl::StatusOr<std::vector<Gpu>> Look() = 0;
};

// All GPUs as they are now; none where there is no driver. Says on standard error where the first
// GPU's device file is there, but not the driver's library that would tell of it.
absl::StatusOr<std::vector<Gpu>> FindGpus(const std::string& first_gpu = "/dev/nvidia0");

// The GPUs that a process with this CUDA_VISIBLE_DEVICES may use: it lists indices or (beginnings
// of) UUIDs, and counts up to the first that does not exist.
std::vector<Gpu> VisibleGpus(const std::vector<Gpu>& gpus, std::string_view visible);

// The CPUs near any of them, ascending: what goes to a GPU need not cross the machine. None: one
// of them does not tell.
std::vector<int> CpusNear(const std::vector<const Gpu*>& gpus);

// The GPUs that `--gpus` asks for: "all", "none", or indices like "0,2". An index that is unknown,
// named twice or of a GPU in trouble is an error.
absl::StatusOr<std::vector<Gpu>> ChooseGpus(const std::vector<Gpu>& gpus, std::string_view asked);

}  // namespace espalier
