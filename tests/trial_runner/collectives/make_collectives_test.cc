#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/collectives/rendezvous/network_interface.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

TEST(MakeCollectives, ChoosesGlooWhereThereIsNoGpu) { EXPECT_TRUE(MakeCollectives({}).ok()); }

TEST(MakeCollectives, UnknownNameIsAnsweredWithTheKnownOnes) {
  CollectivesOptions options;
  options.implementation = "mpi";
  const auto made = MakeCollectives(options);
  ASSERT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("\"mpi\": want one of gloo, nccl"));
}

TEST(MakeCollectives, NcclWithoutGpuIsAnErrorThatSaysWhatWouldDo) {
  CollectivesOptions options;
  options.implementation = "nccl";
  const auto made = MakeCollectives(options);
  ASSERT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("want \"gloo\""));
}

TEST(InterfaceOf, IsThatWhichHasTheAddress) {
  EXPECT_EQ(InterfaceOf("127.0.0.1"), "lo");
  EXPECT_EQ(InterfaceOf("192.0.2.1"), "") << "for documents";
  EXPECT_EQ(InterfaceOf("2001:db8::1"), "");
  EXPECT_EQ(InterfaceOf("a.name"), "");
}

}  // namespace
}  // namespace espalier
