#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>

// Two 3x3 convolutions with a shortcut around them: He, Zhang, Ren, Sun, "Deep Residual Learning
// for Image Recognition" (2016), figure 2. A stride or a new number of channels puts a 1x1
// convolution into the shortcut (option B of section 4.1).
struct ResidualBlock : torch::nn::Module {
  ResidualBlock(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(register_module("conv1", Conv(in, out, 3, stride))),
        conv2(register_module("conv2", Conv(out, out, 3, 1))),
        norm1(register_module("norm1", torch::nn::BatchNorm2d(out))),
        norm2(register_module("norm2", torch::nn::BatchNorm2d(out))) {
    if (stride == 1 && in == out) return;
    shortcut = register_module(
        "shortcut", torch::nn::Sequential(Conv(in, out, 1, stride), torch::nn::BatchNorm2d(out)));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor inner = norm2(conv2(at::relu(norm1(conv1(x)))));
    return at::relu(inner + (shortcut.is_empty() ? x : shortcut->forward(x)));
  }

  static torch::nn::Conv2d Conv(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                std::int64_t stride) {
    return torch::nn::Conv2d(
        torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::BatchNorm2d norm1, norm2;
  torch::nn::Sequential shortcut = nullptr;
};

// ResNet-18 as it is used for images of 32x32: a 3x3 stem of stride 1 without pooling, then four
// stages of two blocks with 64, 128, 256 and 512 channels. [n,3,32,32] -> [n,classes]; 11.2 million
// parameters for ten classes.
struct ResNet18 : torch::nn::Module {
  explicit ResNet18(std::int64_t classes)
      : stem(register_module("stem", ResidualBlock::Conv(3, 64, 3, 1))),
        norm(register_module("norm", torch::nn::BatchNorm2d(64))),
        linear(register_module("linear", torch::nn::Linear(512, classes))) {
    std::int64_t in = 64;
    for (const std::int64_t out : {64, 128, 256, 512}) {
      stages->push_back(ResidualBlock(in, out, out == in ? 1 : 2));
      stages->push_back(ResidualBlock(out, out, 1));
      in = out;
    }
    register_module("stages", stages);
  }

  at::Tensor forward(at::Tensor x) {
    x = stages->forward(at::relu(norm(stem(x))));
    return linear(x.mean({2, 3}));
  }

  torch::nn::Conv2d stem;
  torch::nn::BatchNorm2d norm;
  torch::nn::Sequential stages;
  torch::nn::Linear linear;
};
