// Options of plug-ins that are texts.

#include <gtest/gtest.h>

#include "base/plugin.h"

namespace espalier {
namespace {

const PluginInfo kPlugin = {
    .name = "slurmish",
    .summary = "an example",
    .options = {{.name = "grace_s", .default_value = 3, .meaning = "seconds"},
                {.name = "partition", .meaning = "where", .text = true},
                {.name = "extra", .meaning = "more", .text = true, .repeated = true}}};

std::string Refusal(const Options& numbers, const TextOptions& texts) {
  return std::string(ReadOptions("engine", kPlugin, numbers, texts).status().message());
}

TEST(TextOption, IsWhatWasGivenElseEmpty) {
  const auto given = ReadOptions("engine", kPlugin, {},
                                 {{"partition", {"a,b = $(c)"}}, {"extra", {"--x", "--y z"}}});
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->Text("partition"), "a,b = $(c)");
  EXPECT_EQ(given->Texts("extra"), (std::vector<std::string>{"--x", "--y z"}));
  EXPECT_EQ((*given)["grace_s"], 3);
  const auto none = ReadOptions("engine", kPlugin, {});
  EXPECT_EQ(none->Text("partition"), "");
  EXPECT_TRUE(none->Texts("extra").empty());
}

TEST(TextOption, IsRefusedWhereItDoesNotFit) {
  EXPECT_EQ(Refusal(Options{}, TextOptions{{"grace_s", {"long"}}}),
            "engine \"slurmish\": option \"grace_s\" needs a number >= 0, got \"long\"");
  EXPECT_EQ(Refusal({{"partition", 7}}, TextOptions{}),
            "engine \"slurmish\": option \"partition\" needs text, got 7");
  EXPECT_EQ(Refusal(Options{}, TextOptions{{"partition", {"a", "b"}}}),
            "engine \"slurmish\": option \"partition\" needs text, got \"a\", \"b\"");
  EXPECT_EQ(Refusal(Options{}, TextOptions{{"partitoin", {"a"}}}),
            "engine \"slurmish\" has no option \"partitoin\"; it has grace_s, partition, extra");
}

}  // namespace
}  // namespace espalier
