#include "trial_runner/agent/ranks/left_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace espalier {
namespace {

namespace fs = std::filesystem;

TEST(LeftMemory, IsRemovedOfThisMeetingAlone) {
  std::string name = (fs::temp_directory_path() / "memory-XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  const std::string begin = "deepspeed_allreduce_buffer_";
  const std::vector<std::string> others = {begin + "7_127.0.0.1_7101_0", begin + "7_10.0.0.1_710_0",
                                           begin + "8_127.0.0.1_710_0", "sem.7_127.0.0.1_710_0"};
  for (const std::string& file : others) std::ofstream(folder / file);
  for (const char* rank : {"0", "1", "12"}) {
    std::ofstream(folder / (begin + "7_127.0.0.1_710_" + rank));
  }
  RemoveLeftMemory(folder.string(), 7, "127.0.0.1", 710);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder)) left.push_back(entry.path().filename());
  EXPECT_THAT(left, testing::UnorderedElementsAreArray(others));
  fs::remove_all(folder);
  RemoveLeftMemory(folder.string(), 7, "127.0.0.1", 710);  // a machine without such a folder
}

}  // namespace
}  // namespace espalier
