#include "trial_runner/collectives/cuda/cuda_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace espalier {

#ifdef ESPALIER_CUDA_LIBRARY

namespace {

absl::StatusOr<const CudaLibrary*> Load() {
  // Found by the run path of the program. Global, as LibTorch loads its parts.
  void* library = dlopen(ESPALIER_CUDA_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot load Espalier's CUDA part: ", dlerror()));
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
  return absl::UnimplementedError(
      "Espalier was built without CUDA: build it where a CUDA toolkit is, with ESPALIER_CUDA=ON");
}

#endif

}  // namespace espalier
