#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>

// Points of two spirals that wind around one another, and which of the two each belongs to.
struct Spirals {
  at::Tensor points;  // [n, 2] float
  at::Tensor labels;  // [n] int64, 0 or 1

  std::int64_t size() const { return labels.size(0); }
  Spirals To(at::Device device) const { return {points.to(device), labels.to(device)}; }
};

inline Spirals MakeSpirals(std::int64_t size, std::uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const at::Tensor labels = at::arange(size).remainder(2);
  const at::Tensor radius = at::rand({size}, generator, at::kFloat).sqrt();
  const at::Tensor angle = 6 * radius + 3.14159265 * labels;
  const at::Tensor noise = 0.03 * at::randn({size, 2}, generator, at::kFloat);
  return {at::stack({radius * angle.cos(), radius * angle.sin()}, 1) + noise, labels};
}

struct Net : torch::nn::Module {
  explicit Net(std::int64_t width)
      : linear1(register_module("linear1", torch::nn::Linear(2, width))),
        linear2(register_module("linear2", torch::nn::Linear(width, width))),
        linear3(register_module("linear3", torch::nn::Linear(width, 2))) {}

  at::Tensor forward(const at::Tensor& x) {
    return linear3(at::relu(linear2(at::relu(linear1(x)))));
  }

  torch::nn::Linear linear1, linear2, linear3;
};
