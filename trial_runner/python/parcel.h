#pragma once

#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trial_runner/python/interface.h"

namespace espalier::python {

// What is handed between C++ and Python, beside numbers.
struct Parcel {
  std::vector<std::string> texts;
  std::vector<at::Tensor> tensors;
};

// What torch.ops.espalier.describe_model was told.
struct ModelDescription {
  std::vector<std::vector<at::Tensor>> groups;  // of the optimizers, one after the other
};

// Adam's second moments of a model, one for each trained parameter.
struct SecondMoments {
  std::vector<at::Tensor> moments;
  std::vector<std::int64_t> steps;
  std::vector<double> beta2;
  std::vector<double> epsilon;
};

// A callback has failed. Python keeps its exception.
class CallbackError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The one place where the two languages meet; of the thread that trains.
class Exchange {
 public:
  static Exchange& The() {
    static Exchange exchange;
    return exchange;
  }

  EspalierCallbacks callbacks{};
  Parcel incoming;
  Parcel given;
  ModelDescription described;

  // Calls Python, with `in` as what it finds, and returns what it gave. Throws CallbackError.
  template <typename Call>
  Parcel Ask(Parcel in, const Call& call) {
    incoming = std::move(in);
    given = {};
    const int failed = call(callbacks);
    incoming = {};
    Parcel out = std::exchange(given, {});
    if (failed != 0) {
      throw CallbackError(out.texts.empty() ? "an exception in Python" : out.texts.back());
    }
    return out;
  }
};

}  // namespace espalier::python
