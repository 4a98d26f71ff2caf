// Stands for NVIDIA's library in tests: GPUs are the lines of the file that FAKE_NVML_GPUS names,
// "name|uuid|bytes", or "lost" for one that does not answer. "divided" is one whose instances are
// the lines below that begin with "+"; "unsupported" in place of the bytes is a GPU without memory
// of its own. After the bytes there may be "cpus=3" (it is near CPUs 0 and 1),
// "action=1" (the driver wants it reset), "rows=pending" or "rows=failed". "hang" keeps a caller
// for as long as the file says so. Without that variable the driver is not loaded. Read at each
// count, so that a test can change it. As of NVML, nothing works that is not between init and
// shutdown, and threads do not disturb one another: each has what it has counted itself.

#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0;
constexpr int kUninitialized = 1;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kDriverNotLoaded = 9;
constexpr int kGpuIsLost = 15;

struct Device {
  std::string name;
  std::string uuid;
  std::string bytes;
  std::string cpus;
  std::string action;
  std::string rows;
  std::vector<Device> instances;
};

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency_us;
  int type, result;
  unsigned long long value;
};

struct Memory {
  unsigned long long total, free, used;
};

std::atomic<int> holders = 0;

std::string& File() {
  static thread_local std::string path;
  return path;
}

std::vector<Device>& Devices() {
  static thread_local std::vector<Device> devices;
  return devices;
}

int Copy(const std::string& text, char* to, unsigned size) {
  if (text.size() >= size) return kInvalidArgument;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kSuccess;
}

}  // namespace

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the names are those of NVML's C interface

int nvmlInit_v2() {
  const char* file = std::getenv("FAKE_NVML_GPUS");
  if (file == nullptr) return kDriverNotLoaded;
  File() = file;
  ++holders;
  return kSuccess;
}
int nvmlShutdown() {
  if (holders == 0) return kUninitialized;
  --holders;
  return kSuccess;
}
int FakeNvmlHolders() { return holders; }
const char* nvmlErrorString(int result) {
  return result == kGpuIsLost ? "GPU is lost" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  if (holders == 0) return kUninitialized;
  const auto hangs = [] {
    std::string first;
    std::ifstream(File()) >> first;
    return first == "hang";
  };
  while (hangs()) poll(nullptr, 0, 1);
  std::ifstream file(File());
  Devices().clear();
  for (std::string line; std::getline(file, line);) {
    const bool instance = line.rfind('+', 0) == 0;
    std::istringstream words(instance ? line.substr(1) : line);
    Device device;
    std::getline(words, device.name, '|');
    std::getline(words, device.uuid, '|');
    words >> device.bytes;
    for (std::string word; words >> word;) {
      const std::string value = word.substr(word.find('=') + 1);
      if (word.rfind("cpus=", 0) == 0) device.cpus = value;
      if (word.rfind("action=", 0) == 0) device.action = value;
      if (word.rfind("rows=", 0) == 0) device.rows = value;
    }
    (instance ? Devices().back().instances : Devices()).push_back(device);
  }
  *count = static_cast<unsigned>(Devices().size());
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= Devices().size()) return kInvalidArgument;
  *device = &Devices()[index];
  return Devices()[index].name == "lost" ? kGpuIsLost : kSuccess;
}

int nvmlDeviceGetName(void* device, char* name, unsigned size) {
  return Copy(static_cast<Device*>(device)->name, name, size);
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  return Copy(static_cast<Device*>(device)->uuid, uuid, size);
}

int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  if (static_cast<Device*>(device)->bytes == "unsupported") return kNotSupported;
  *current = *pending = static_cast<Device*>(device)->name == "divided" ? 1 : 0;
  return kSuccess;
}

int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 7;
  return kSuccess;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** instance) {
  auto& instances = static_cast<Device*>(device)->instances;
  if (index >= instances.size()) return kNotFound;
  *instance = &instances[index];
  return kSuccess;
}

int nvmlDeviceGetFieldValues(void* device, int count, FieldValue* values) {
  constexpr unsigned kRecoveryAction = 230;
  const std::string& action = static_cast<Device*>(device)->action;
  for (int i = 0; i < count; ++i) {
    const bool known = values[i].field == kRecoveryAction && !action.empty();
    values[i].result = known ? kSuccess : kNotSupported;
    if (known) values[i].value = std::stoull(action);
  }
  return kSuccess;
}

int nvmlDeviceGetRemappedRows(void* device, unsigned* correctable, unsigned* uncorrectable,
                              unsigned* pending, unsigned* failed) {
  const std::string& rows = static_cast<Device*>(device)->rows;
  if (rows.empty()) return kNotSupported;
  *correctable = 0;
  *uncorrectable = 1;
  *pending = rows == "pending" ? 1 : 0;
  *failed = rows == "failed" ? 1 : 0;
  return kSuccess;
}

int nvmlDeviceGetCpuAffinity(void* device, unsigned words, unsigned long* cpus) {
  const std::string& near = static_cast<Device*>(device)->cpus;
  if (near.empty()) return kNotSupported;
  for (unsigned i = 1; i < words; ++i) cpus[i] = 0;
  cpus[0] = std::stoul(near);
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  const std::string& bytes = static_cast<Device*>(device)->bytes;
  if (bytes == "unsupported") return kNotSupported;
  memory->total = std::stoull(bytes);
  memory->free = memory->total;
  memory->used = 0;
  return kSuccess;
}

// NOLINTEND(readability-identifier-naming)
}
