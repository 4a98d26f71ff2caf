// What another agent says of a checkpoint: its manifest, and then the bytes of its files. The first
// byte says whether one file was asked for, the second how long the manifest is.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fuzz/input.h"
#include "tests/storage/scratch_folder.h"
#include "transfer.pb.h"
#include "trial_runner/agent/checkpoints/incoming_checkpoint.h"
#include "trial_runner/agent/checkpoints/told_manifest.h"
#include "tuner/credentials/sha256.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

constexpr char kIncoming[] = "incoming";

void CheckNothingOutside(const ScratchFolder& scratch) {
  for (const auto& entry : fs::directory_iterator(scratch.path())) {
    const std::string name = entry.path().filename();
    ESPALIER_CHECK(name == "trial" || name == kIncoming, "a checkpoint stays in its folder");
  }
}

std::string ContentOf(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Fetch(const ScratchFolder& scratch, CheckpointManifest manifest, const std::string& name,
           std::string_view content) {
  const fs::path folder = scratch.File("trial");
  IncomingCheckpoint incoming(folder, name, kIncoming);
  const std::vector<CheckpointPart> parts = manifest.parts;
  absl::Status status = incoming.Begin(std::move(manifest), 0, 0);
  if (status.ok()) status = incoming.Add(content.substr(0, content.size() / 2));
  if (status.ok()) status = incoming.Add(content.substr(content.size() / 2));
  Sha256 sum;
  sum.Add(content);
  if (status.ok()) status = incoming.Check(sum.Take());
  if (status.ok()) status = incoming.CheckForDamage({});
  if (status.ok()) status = incoming.PutInPlace();
  if (status.ok()) {
    for (const CheckpointPart& part : parts) {
      const std::string_view sent = content.substr(0, static_cast<std::size_t>(part.size));
      ESPALIER_CHECK(ContentOf(folder / part.path) == sent, "what was sent is there");
      content.remove_prefix(sent.size());
    }
  }
  CheckNothingOutside(scratch);
  incoming.Discard();
  for (const auto& entry : fs::directory_iterator(scratch.path())) fs::remove_all(entry);
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  std::string_view input = fuzz::TextOf(data, size);
  const std::string name = (fuzz::TakeByte(input) & 1) != 0 ? "a.pt" : "";
  const std::size_t length = fuzz::TakeByte(input);
  const std::string_view bytes = input.substr(0, length);
  v1::CheckpointManifest told;
  if (!told.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return 0;
  const absl::StatusOr<CheckpointManifest> manifest = ManifestOf(told, name);
  if (!manifest.ok()) return 0;
  std::int64_t sum = 0;
  for (const CheckpointPart& part : manifest->parts) {
    ESPALIER_CHECK(StaysInside(part.path) && part.size >= 0, "each part is one of the folder's");
    ESPALIER_CHECK(part.path.find('\0') == std::string::npos, "as the system sees its path");
    sum += part.size;
  }
  ESPALIER_CHECK(sum == manifest->size, "a checkpoint is as large as its parts");
  static const ScratchFolder scratch;
  Fetch(scratch, *manifest, name, input.substr(bytes.size()));
  return 0;
}
