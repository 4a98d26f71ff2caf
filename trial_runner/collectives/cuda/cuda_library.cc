#include "trial_runner/collectives/cuda/cuda_library.h"

#include <dlfcn.h>
#include <torch/version.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace espalier {

absl::Status GpusFit(int torch_major, int torch_minor) {
  if (torch_major > 2 || (torch_major == 2 && torch_minor >= 11)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "GPUs need torch 2.11 or newer, for CUDA 13: this is torch ", torch_major, ".", torch_minor));
}

absl::Status GpusFit() { return GpusFit(TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR); }

#ifdef ESPALIER_CUDA_LIBRARY

namespace {

absl::StatusOr<const CudaLibrary*> Load() {
  // Found by the run path of the program. Global, as LibTorch loads its parts.
  void* library = dlopen(ESPALIER_CUDA_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot load Espalier's part for CUDA 13: ", dlerror()));
  }
  using Table = const CudaLibrary* (*)();
  const auto table = reinterpret_cast<Table>(dlsym(library, "EspalierCudaLibrary"));
  if (table == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(ESPALIER_CUDA_LIBRARY, " is not Espalier's CUDA part: ", dlerror()));
  }
  return table();
}

}  // namespace

bool BuiltWithCuda() { return true; }

absl::StatusOr<const CudaLibrary*> LoadCudaLibrary() {
  static const absl::StatusOr<const CudaLibrary*> loaded = Load();
  return loaded;
}

#else

bool BuiltWithCuda() { return false; }

absl::StatusOr<const CudaLibrary*> LoadCudaLibrary() {
  ESPALIER_RETURN_IF_ERROR(GpusFit());
  return absl::UnimplementedError(
      "Espalier was built without CUDA: build it where a CUDA toolkit is, with ESPALIER_CUDA=ON");
}

#endif

}  // namespace espalier
