#include "trial_runner/agent/checkpoints/told_manifest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace espalier {
namespace {

v1::CheckpointManifest Told(const std::vector<std::string>& paths,
                            const std::string& fingerprint = "0123abcd") {
  v1::CheckpointManifest told;
  told.set_fingerprint(fingerprint);
  for (const std::string& path : paths) {
    told.add_files()->set_path(path);
    told.mutable_files(told.files_size() - 1)->set_size(5);
  }
  return told;
}

TEST(ToldManifest, IsOfTheFilesThatItNames) {
  const absl::StatusOr<CheckpointManifest> manifest = ManifestOf(Told({"a", "b/c", "b/d"}), "");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->size, 15);
  EXPECT_EQ(manifest->parts[1].path, "b/c");
  EXPECT_TRUE(ManifestOf(Told({"a.pt"}), "a.pt").ok());
}

TEST(ToldManifest, NamesEachFileOnce) {
  for (const std::vector<std::string>& paths :
       std::vector<std::vector<std::string>>{{"a", "a"}, {"b/c", "b//c"}, {"a", "b", "a"}}) {
    EXPECT_TRUE(absl::IsDataLoss(ManifestOf(Told(paths), "").status())) << paths[1];
  }
}

// Beside what is staged by its fingerprint there is the former folder, under the name "old".
TEST(ToldManifest, HasAFingerprintOfDigits) {
  for (const char* bad : {"", "old", "../a", "a/b", ".", "0123 "}) {
    EXPECT_TRUE(absl::IsDataLoss(ManifestOf(Told({"a"}, bad), "").status())) << bad;
  }
}

TEST(ToldManifest, IsOfTheFileThatWasAskedFor) {
  EXPECT_TRUE(absl::IsDataLoss(ManifestOf(Told({"b.pt"}), "a.pt").status()));
  EXPECT_TRUE(absl::IsDataLoss(ManifestOf(Told({"a.pt", "b.pt"}), "a.pt").status()));
  EXPECT_TRUE(absl::IsDataLoss(ManifestOf(Told({}), "").status()));
}

}  // namespace
}  // namespace espalier
