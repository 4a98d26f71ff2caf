// Stands for NVIDIA's library in tests: GPUs are the lines of the file that FAKE_NVML_GPUS names,
// "name|uuid|bytes", or "lost" for one that does not answer. Without that variable the driver is
// not loaded. Read at each count, so that a test can change it.

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kDriverNotLoaded = 9;
constexpr int kGpuIsLost = 15;

struct Device {
  std::string name;
  std::string uuid;
  unsigned long long bytes = 0;
};

struct Memory {
  unsigned long long total, free, used;
};

std::vector<Device>& Devices() {
  static std::vector<Device> devices;
  return devices;
}

int Copy(const std::string& text, char* to, unsigned size) {
  if (text.size() >= size) return kInvalidArgument;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kSuccess;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return std::getenv("FAKE_NVML_GPUS") == nullptr ? kDriverNotLoaded : kSuccess; }
int nvmlShutdown() { return kSuccess; }
const char* nvmlErrorString(int result) {
  return result == kGpuIsLost ? "GPU is lost" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  std::ifstream file(std::getenv("FAKE_NVML_GPUS"));
  Devices().clear();
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Device device;
    std::getline(words, device.name, '|');
    std::getline(words, device.uuid, '|');
    words >> device.bytes;
    Devices().push_back(device);
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

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  memory->total = static_cast<Device*>(device)->bytes;
  memory->free = memory->total;
  memory->used = 0;
  return kSuccess;
}
}
