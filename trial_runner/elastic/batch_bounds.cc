#include "trial_runner/elastic/batch_bounds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace espalier {
namespace {

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckSizes(const DataLoaderOptions& options, std::int64_t dataset_size) {
  if (dataset_size < 1) return Invalid("the data set has ", dataset_size, " samples: want some");
  if (options.batch_size < 1) {
    return Invalid("batch_size is ", options.batch_size, ": want a positive number");
  }
  if (options.batch_size > dataset_size) {
    return Invalid("batch_size is ", options.batch_size,
                   ": want at most the size of the data set, ", dataset_size);
  }
  if (options.max_batch_size != 0 && options.max_batch_size < options.batch_size) {
    return Invalid("max_batch_size is ", options.max_batch_size, ": want at least batch_size, ",
                   options.batch_size, ", or 0 for a batch that stays");
  }
  return absl::OkStatus();
}

absl::Status CheckAtomic(const DataLoaderOptions& options) {
  const std::int64_t min = options.min_atomic_batch_size;
  const std::int64_t max = options.max_atomic_batch_size;
  if (min < 0) return Invalid("min_atomic_batch_size is ", min, ": want 0 or more");
  if (max < 0) return Invalid("max_atomic_batch_size is ", max, ": want 0 or more");
  if (max > 0 && min > max) {
    return Invalid("min_atomic_batch_size is ", min, ": want at most max_atomic_batch_size, ", max);
  }
  if (min > options.batch_size) {
    return Invalid("min_atomic_batch_size is ", min, ": want at most batch_size, ",
                   options.batch_size, ", which one replica alone has to form");
  }
  if (!options.accumulation && max > 0 && max < options.batch_size) {
    return Invalid("max_atomic_batch_size is ", max, " and accumulation is off: one replica alone ",
                   "cannot form batch_size, ", options.batch_size);
  }
  return absl::OkStatus();
}

absl::Status CheckReadingAhead(const DataLoaderOptions& options) {
  if (options.workers < 0 || options.workers > DataLoaderOptions::kMaxWorkers) {
    return Invalid("workers is ", options.workers, ": want 0 to ", DataLoaderOptions::kMaxWorkers);
  }
  if (options.prefetch < 1 || options.prefetch > DataLoaderOptions::kMaxPrefetch) {
    return Invalid("prefetch is ", options.prefetch, ": want 1 to ",
                   DataLoaderOptions::kMaxPrefetch, " batches ahead for each of the workers");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BatchBounds> BoundsOf(const DataLoaderOptions& options, std::int64_t dataset_size,
                                     bool adaptive_batch) {
  ESPALIER_RETURN_IF_ERROR(CheckSizes(options, dataset_size));
  ESPALIER_RETURN_IF_ERROR(CheckAtomic(options));
  if (options.workers != 0) ESPALIER_RETURN_IF_ERROR(CheckReadingAhead(options));
  BatchBounds bounds;
  bounds.initial = options.batch_size;
  bounds.max_global = adaptive_batch && options.max_batch_size > 0
                          ? std::min(options.max_batch_size, dataset_size)
                          : options.batch_size;
  bounds.min_atomic = std::max<std::int64_t>(options.min_atomic_batch_size, 1);
  bounds.max_atomic =
      options.max_atomic_batch_size > 0 ? options.max_atomic_batch_size : bounds.max_global;
  bounds.accumulation = options.accumulation;
  return bounds;
}

}  // namespace espalier
