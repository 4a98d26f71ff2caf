#include "base/checkpoint_seal.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/file_descriptor.h"

namespace espalier {
namespace {

std::optional<CheckpointSeal> SealIn(const std::string& content) {
  const FileDescriptor file(memfd_create("checkpoint", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), content.data(), content.size()), std::ssize(content));
  const bool sealed = !absl::IsNotFound(CheckCheckpointSeal(file.get()));
  const std::optional<CheckpointSeal> seal = ReadCheckpointSeal(file.get());
  EXPECT_EQ(seal.has_value(), sealed);
  return seal;
}

TEST(CheckpointSeal, OneThatIsDamagedItselfIsNone) {
  const std::string text = TextOf({.size = 0, .checksum = 0xab, .value = 0.5});
  ASSERT_TRUE(SealIn(text));
  EXPECT_EQ(SealIn(text)->checksum, 0xab);
  EXPECT_EQ(SealIn(text)->value, 0.5);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    // A digit may have become another one: that is for the checksum to find.
    damaged[i] = '_';
    EXPECT_FALSE(SealIn(damaged)) << damaged;
  }
  std::string other = text;
  EXPECT_FALSE(SealIn(other.replace(text.find("ab"), 2, "AB"))) << "is not written so";
  EXPECT_FALSE(SealIn(text.substr(1)));
}

}  // namespace
}  // namespace espalier
