// Checkpoint files: the checksum and the value at their end.

#include "base/checkpoint_seal.h"

#include <bit>

#include "base/checksum.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const std::string content(fuzz::TextOf(data, size));
  {
    const FileDescriptor file = fuzz::FileOf(content);
    const std::optional<CheckpointSeal> seal = ReadCheckpointSeal(file.get());
    const absl::Status checked = CheckCheckpointSeal(file.get());
    ESPALIER_CHECK(seal.has_value() == !absl::IsNotFound(checked), "a file has a seal, or none");
    if (seal) {
      ESPALIER_CHECK(
          seal->size + static_cast<std::int64_t>(kCheckpointSealBytes) == std::ssize(content),
          "a seal is at the end");
      ESPALIER_CHECK(content.ends_with(TextOf(*seal)) || !checked.ok(), "it is written in one way");
    }
  }
  Checksum checksum;
  checksum.Add(content.data(), content.size());
  const CheckpointSeal seal{
      .size = std::ssize(content), .checksum = checksum.value(), .value = 0.5};
  std::string sealed = content + TextOf(seal);
  ESPALIER_CHECK(CheckCheckpointSeal(fuzz::FileOf(sealed).get()).ok(), "a sealed file is whole");
  if (content.empty()) return 0;
  sealed[size / 2] = static_cast<char>(sealed[size / 2] ^ 1);
  ESPALIER_CHECK(absl::IsDataLoss(CheckCheckpointSeal(fuzz::FileOf(sealed).get())),
                 "and not with one bit changed");
  return 0;
}
