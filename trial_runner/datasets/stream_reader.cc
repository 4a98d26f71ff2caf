#include "trial_runner/datasets/stream_reader.h"

#include "absl/strings/str_cat.h"

namespace espalier {

absl::Status NoStreamError(std::int64_t epoch) {
  return absl::InvalidArgumentError(absl::StrCat("the data set opened no stream for epoch ", epoch,
                                                 ": Open gave a null pointer"));
}

absl::Status StreamTooShortError(std::int64_t epoch, std::int64_t at, std::int64_t size) {
  return absl::InvalidArgumentError(absl::StrCat("the stream of epoch ", epoch,
                                                 " ended before sample ", at, ": want ", size,
                                                 " samples in every epoch"));
}

absl::Status StreamTooLongError(std::int64_t epoch, std::int64_t size) {
  return absl::InvalidArgumentError(absl::StrCat("the stream of epoch ", epoch,
                                                 " does not end after sample ", size - 1, ": want ",
                                                 size, " samples in every epoch"));
}

}  // namespace espalier
