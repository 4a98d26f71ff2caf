// AgentLoop's GPUs: which of them are in trouble, and what the service is told of it.

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "trial_runner/agent/agent_loop.h"
#include "trial_runner/agent/trial_environment.h"

namespace espalier {

void AgentLoop::WatchGpus() {
  if (options_.gpus.empty()) return;
  absl::StatusOr<std::unique_ptr<GpuDriver>> driver = GpuDriver::Open();
  if (!driver.ok() || *driver == nullptr) return;  // they were found by other means
  gpu_watch_ = std::make_unique<GpuWatch>(
      *std::move(driver), options_.gpus, GpuWatch::Times{},
      [this](const Gpu& gpu) { NoteGpu(gpu); },
      [this](std::int64_t look) {
        {
          const std::lock_guard lock(mutex_);
          gpu_looks_ = look;
        }
        Wake();
      });
}

void AgentLoop::NoteGpu(const Gpu& gpu) {
  if (gpu.trouble.empty()) {
    spdlog::info("GPU {} ({}, {}) works again", gpu.index, gpu.name, gpu.uuid);
  } else {
    spdlog::error("GPU {} ({}, {}): {}; nothing is started on it until it works again", gpu.index,
                  gpu.name, gpu.uuid, gpu.trouble);
  }
  {
    const std::lock_guard lock(mutex_);
    gpu_trouble_[gpu.uuid] =
        gpu.trouble.empty() ? ""
                            : absl::StrCat("GPU ", gpu.index, " (", gpu.name, "): ", gpu.trouble);
    gpu_news_ = true;
  }
  Wake();
}

v1::UnusableSlots AgentLoop::UnusableSlots() const {
  v1::UnusableSlots unusable;
  const std::lock_guard lock(mutex_);
  for (int slot = 0; slot < options_.slots; ++slot) {
    const Gpu* const gpu = GpuOfSlot(options_, slot);
    const auto trouble = gpu == nullptr ? gpu_trouble_.end() : gpu_trouble_.find(gpu->uuid);
    if (trouble == gpu_trouble_.end() || trouble->second.empty()) continue;
    v1::UnusableSlot& added = *unusable.add_slots();
    added.set_slot(slot);
    added.set_reason(trouble->second);
  }
  return unusable;
}

void AgentLoop::TellUnusableSlots() {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(gpu_news_, false)) return;
  }
  v1::AgentMessage event;
  *event.mutable_unusable() = UnusableSlots();
  outbox_.Add(std::move(event));
}

void AgentLoop::EndSparesBeside(int slot) {
  const Gpu* const gpu = GpuOfSlot(options_, slot);
  if (gpu == nullptr) return;
  spares_.EndIf([&](const ReplicaProcess& spare) {
    return GpuOfSlot(options_, spare.identity().slot()) == gpu;
  });
}

}  // namespace espalier
