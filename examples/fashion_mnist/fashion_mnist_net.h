#pragma once

#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/dropout.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>

// Two convolutions of `width` and 2 `width` channels, then two linear layers. [n,1,28,28] ->
// [n,10].
struct FashionMnistNet : torch::nn::Module {
  FashionMnistNet(std::int64_t width, double dropout_share)
      : conv1(register_module("conv1",
                              torch::nn::Conv2d(torch::nn::Conv2dOptions(1, width, 3).padding(1)))),
        conv2(register_module("conv2",
                              torch::nn::Conv2d(torch::nn::Conv2dOptions(width, 2 * width, 3)))),
        linear1(register_module("linear1", torch::nn::Linear(2 * width * 6 * 6, 8 * width))),
        linear2(register_module("linear2", torch::nn::Linear(8 * width, 10))),
        dropout(dropout_share) {}

  at::Tensor forward(at::Tensor x) {
    x = torch::nn::functional::max_pool2d(at::relu(conv1(x)),
                                          torch::nn::functional::MaxPool2dFuncOptions(2));
    x = torch::nn::functional::max_pool2d(at::relu(conv2(x)),
                                          torch::nn::functional::MaxPool2dFuncOptions(2));
    x = at::relu(linear1(x.flatten(1)));
    x = torch::nn::functional::dropout(
        x, torch::nn::functional::DropoutFuncOptions().p(dropout).training(is_training()));
    return linear2(x);
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Linear linear1, linear2;
  double dropout;
};
