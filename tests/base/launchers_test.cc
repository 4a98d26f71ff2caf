#include "base/launchers.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

std::string_view NameOf(const std::vector<std::string>& command) {
  const Launcher* const launcher = LauncherOf(command);
  return launcher == nullptr ? "none" : launcher->name;
}

TEST(Launchers, AreFoundByTheirNamesAndModules) {
  EXPECT_EQ(NameOf({"torchrun", "--nproc-per-node=gpu", "train.py"}), "torchrun");
  EXPECT_EQ(NameOf({"/opt/venv/bin/deepspeed", "train.py"}), "deepspeed");
  EXPECT_EQ(NameOf({"python3", "-m", "torch.distributed.run", "train.py"}), "torchrun");
  EXPECT_EQ(NameOf({"env", "A=1", "accelerate", "launch", "train.py"}), "accelerate");
  EXPECT_EQ(NameOf({"sh", "-c", "cd /work;torchrun train.py --lr \"$1\""}), "torchrun");
  EXPECT_EQ(NameOf({"mpirun", "-n", "2", "./train"}), "mpirun");
}

TEST(Launchers, AreNotFoundInWordsThatResembleThem) {
  EXPECT_EQ(NameOf({}), "none");
  EXPECT_EQ(NameOf({"python3", "train.py", "--deepspeed", "deepspeed.json"}), "none");
  EXPECT_EQ(NameOf({"./my-torchrun"}), "none");
  EXPECT_EQ(NameOf({"python3", "-m", "torch.distributed"}), "none");
}

}  // namespace
}  // namespace espalier
