#include "examples/fashion_mnist/fashion_mnist_data.h"

#include <ATen/ATen.h>
#include <zlib.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

constexpr std::uint32_t kImagesMagic = 0x803;
constexpr std::uint32_t kLabelsMagic = 0x801;

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};

std::uint32_t BigEndian(const unsigned char* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
}

// An IDX file: a magic number, one big-endian size a dimension, then bytes.
at::Tensor ReadIdx(const std::string& path, std::uint32_t magic, int dimensions) {
  const std::unique_ptr<gzFile_s, CloseGz> file(gzopen(path.c_str(), "rb"));
  if (!file) {
    throw std::runtime_error("cannot open " + path + ": " + std::strerror(errno) +
                             "; install the data set (apt-get install dataset-fashion-mnist) or "
                             "name its folder with --data DIR");
  }
  const auto read = [&](void* to, std::size_t bytes) {
    if (gzread(file.get(), to, static_cast<unsigned>(bytes)) != static_cast<int>(bytes)) {
      throw std::runtime_error(path + " is cut short: install the data set again");
    }
  };
  std::vector<unsigned char> header(4 * static_cast<std::size_t>(dimensions + 1));
  read(header.data(), header.size());
  if (BigEndian(header.data()) != magic) {
    throw std::runtime_error(path + " is not an IDX file of the kind that was expected");
  }
  std::vector<std::int64_t> shape;
  for (int d = 1; d <= dimensions; ++d) shape.push_back(BigEndian(header.data() + std::ptrdiff_t{4} * d));
  at::Tensor tensor = at::empty(shape, at::kByte);
  read(tensor.data_ptr<std::uint8_t>(), static_cast<std::size_t>(tensor.numel()));
  return tensor;
}

}  // namespace

Images ReadFashionMnist(const std::string& directory, const std::string& part) {
  const at::Tensor pixels =
      ReadIdx(directory + "/" + part + "-images-idx3-ubyte.gz", kImagesMagic, 3);
  const at::Tensor labels =
      ReadIdx(directory + "/" + part + "-labels-idx1-ubyte.gz", kLabelsMagic, 1);
  if (pixels.size(0) != labels.size(0)) {
    throw std::runtime_error(directory + ": " + part + " has " + std::to_string(pixels.size(0)) +
                             " images and " + std::to_string(labels.size(0)) + " labels");
  }
  // Mean and deviation of the training images, over all pixels.
  constexpr double kMean = 0.2860;
  constexpr double kDeviation = 0.3530;
  return {pixels.unsqueeze(1).to(at::kFloat).div_(255).sub_(kMean).div_(kDeviation),
          labels.to(at::kLong)};
}
