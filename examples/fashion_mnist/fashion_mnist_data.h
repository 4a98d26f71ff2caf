#pragma once

#include <string>

#include <ATen/core/Tensor.h>

// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017; MIT licence) from its gzip'ed IDX files, as the
// Debian package dataset-fashion-mnist installs them.

inline constexpr char kDefaultData[] = "/usr/share/datasets/fashion-mnist";

struct Images {
  at::Tensor pixels;  // [n, 1, 28, 28] float, normalised to mean 0 and deviation 1
  at::Tensor labels;  // [n] int64, 0 to 9

  std::int64_t size() const { return labels.size(0); }
  Images To(at::Device device) const { return {pixels.to(device), labels.to(device)}; }
};

// `part` is "train" (60,000 images) or "t10k" (10,000). Throws std::runtime_error with a message
// that names the file and the remedy.
Images ReadFashionMnist(const std::string& directory, const std::string& part);
