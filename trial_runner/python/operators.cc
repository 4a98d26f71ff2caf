// What takes or returns tensors: operators of LibTorch's dispatcher, torch.ops.espalier.* in
// Python.

#include <torch/library.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trial_runner/python/parcel.h"
#include "trial_runner/python/session.h"

namespace espalier::python {
namespace {

// Without the program's own history: what is done with them here is no part of its graphs. A
// parameter itself has to be kept, since its gradients are asked for.
void DescribeModel(std::vector<at::Tensor> trained, at::IntArrayRef group_sizes) {
  ModelDescription described;
  auto next = trained.begin();
  for (const std::int64_t size : group_sizes) {
    described.groups.emplace_back(next, next + size);
    next += size;
  }
  Exchange::The().described = std::move(described);
}

void SetSecondMoments(std::int64_t model, std::vector<at::Tensor> moments, at::IntArrayRef steps,
                      at::ArrayRef<double> beta2, at::ArrayRef<double> epsilon) {
  Session::The().SetSecondMoments(model, {.moments = std::move(moments),
                                          .steps = steps.vec(),
                                          .beta2 = beta2.vec(),
                                          .epsilon = epsilon.vec()});
}

void LeaveLoop() { Session::The().engine().LeaveLoop(); }

void AlignMicrobatches() { Session::The().engine().AlignMicrobatches(); }

bool SumsOverStep() { return Session::The().engine().SumsOverStep(); }

at::Tensor SumOverStep(const at::Tensor& own, bool weighted) {
  return Session::The().engine().SumOverStep(own, weighted);
}

std::vector<at::Tensor> Incoming() { return Exchange::The().incoming.tensors; }

void Give(std::vector<at::Tensor> tensors) {
  auto& given = Exchange::The().given.tensors;
  given.insert(given.end(), tensors.begin(), tensors.end());
}

}  // namespace
}  // namespace espalier::python

TORCH_LIBRARY(espalier, library) {
  using namespace espalier::python;  // NOLINT: names of this source
  library.def("describe_model(Tensor[] trained, int[] group_sizes) -> ()", DescribeModel);
  library.def(
      "set_second_moments(int model, Tensor[] moments, int[] steps, float[] beta2, "
      "float[] epsilon) -> ()",
      SetSecondMoments);
  library.def("leave_loop() -> ()", LeaveLoop);
  // Layers that normalise over all replicas.
  library.def("align_microbatches() -> ()", AlignMicrobatches);
  library.def("sums_over_step() -> bool", SumsOverStep);
  library.def("sum_over_step(Tensor own, bool weighted) -> Tensor", SumOverStep);
  library.def("incoming() -> Tensor[]", Incoming);
  library.def("give(Tensor[] tensors) -> ()", Give);
}
