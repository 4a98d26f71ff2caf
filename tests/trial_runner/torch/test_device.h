#pragma once

#include <torch/types.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/trial_runner/kernels/host_launch.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/torch/process/device.h"

namespace espalier {

// Where tests of what is not of the host alone run: on the GPU with ESPALIER_TEST_DEVICE=cuda, else
// on the CPU. The record of the test that asks says so ("device"), and the steps of tests/gpu want
// it of each suite: one that asked nobody would pass on a GPU's machine, and on its CPU.
inline at::Device TestDevice() {
  static const at::Device device = [] {
    const char* named = std::getenv("ESPALIER_TEST_DEVICE");
    if (named == nullptr || std::string(named) != "cuda") return at::Device(at::kCPU);
    const auto assigned = AssignedDevice();
    EXPECT_TRUE(assigned.ok()) << assigned.status();
    return *assigned;
  }();
  ::testing::Test::RecordProperty("device", device.str());
  return device;
}

// On a GPU the kernel is the real one.
inline GradientKernel TestKernel() {
  static const GradientKernel kernel = [] {
    if (!TestDevice().is_cpu()) return GradientKernelFor(TestDevice());
    std::cerr << "not tested: the kernel on a GPU: ESPALIER_TEST_DEVICE is not cuda\n";
    return &LaunchOnHost;
  }();
  return kernel;
}

// Over Gloo, for memory of the device and of the host.
inline std::unique_ptr<Collectives> TestCollectives() {
  CollectivesOptions options;
  options.implementation = "gloo";
  if (!TestDevice().is_cpu()) options.device = int{TestDevice().index()};
  auto made = MakeCollectives(options);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

}  // namespace espalier
