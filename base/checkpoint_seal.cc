#include "base/checkpoint_seal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/checksum.h"

namespace espalier {
namespace {

// Both numbers follow as sixteen hexadecimal digits, the value by its bits.
constexpr std::string_view kSealBegin = "espalier-checkpoint-1 ";
static_assert(kCheckpointSealBytes == kSealBegin.size() + 16 + 1 + 16);

constexpr std::int64_t kCheckedAtOnce = 1 << 20;

}  // namespace

std::string TextOf(const CheckpointSeal& seal) {
  return absl::StrFormat("%s%016x %016x", std::string(kSealBegin), seal.checksum,
                         std::bit_cast<std::uint64_t>(seal.value));
}

std::optional<CheckpointSeal> ReadCheckpointSeal(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0) return std::nullopt;
  CheckpointSeal seal;
  seal.size = status.st_size - static_cast<std::int64_t>(kCheckpointSealBytes);
  std::string text(kCheckpointSealBytes, '\0');
  if (seal.size < 0 ||
      pread(file, text.data(), text.size(), seal.size) != ssize_t{kCheckpointSealBytes}) {
    return std::nullopt;
  }
  std::uint64_t bits = 0;
  if (!text.starts_with(kSealBegin) ||
      !absl::SimpleHexAtoi(text.substr(kSealBegin.size(), 16), &seal.checksum) ||
      !absl::SimpleHexAtoi(text.substr(kSealBegin.size() + 17, 16), &bits)) {
    return std::nullopt;
  }
  seal.value = std::bit_cast<double>(bits);
  // A seal that is damaged itself is none.
  if (TextOf(seal) != text) return std::nullopt;
  return seal;
}

absl::Status CheckCheckpointSeal(int file, const std::function<bool()>& go_on) {
  const std::optional<CheckpointSeal> seal = ReadCheckpointSeal(file);
  if (!seal) return absl::NotFoundError("there is no checksum at its end");
  Checksum checksum;
  std::string buffer(static_cast<std::size_t>(std::min(seal->size, kCheckedAtOnce)), '\0');
  for (std::int64_t at = 0; at < seal->size;) {
    if (go_on && !go_on()) return absl::CancelledError("given up");
    const std::size_t most = std::min(buffer.size(), static_cast<std::size_t>(seal->size - at));
    const ssize_t count = pread(file, buffer.data(), most, at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::UnavailableError(absl::StrCat("cannot read: ", strerror(errno)));
    if (count == 0) return absl::DataLossError("is cut off");
    checksum.Add(buffer.data(), static_cast<std::size_t>(count));
    at += count;
  }
  if (checksum.value() != seal->checksum) {
    return absl::DataLossError(
        absl::StrFormat("is damaged: its checksum is %016x, and %016x was written down with it",
                        checksum.value(), seal->checksum));
  }
  return absl::OkStatus();
}

}  // namespace espalier
