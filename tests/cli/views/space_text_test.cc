#include "tuner/cli/views/space_text.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

constexpr char kSpace[] = R"({
  "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
  "rule": {"_type": "choice", "_value": [
    {"_name": "none"},
    {"_name": "legw", "warmup": {"_type": "randint", "_value": [1, 5]}}]},
  "name, or so": {"_type": "choice", "_value": ["a \"b\"", "c"]}})";

TEST(SpaceText, TableShowsOptionsAsATree) {
  EXPECT_EQ(SpaceTable(*SearchSpace::FromJson(kSpace)),
            "PARAMETER    TYPE        VALUES      COUNT\n"
            "lr           loguniform  1e-05 to 1  not finite\n"
            "rule         choice      none, legw  2\n"
            "  none:\n"
            "  legw:\n"
            "    warmup   randint     1 to 4      4\n"
            "name, or so  choice      a \"b\", c    2\n"
            "\n"
            "4 parameters, 1 of them in options of choices; not finitely many configurations\n");
}

TEST(SpaceText, SummaryCountsConfigurations) {
  EXPECT_EQ(SpaceSummary(*SearchSpace::FromJson(R"({"x": {"_type": "choice", "_value": [1]}})")),
            "1 parameter; 1 configuration");
  EXPECT_EQ(SpaceSummary(*SearchSpace::FromJson(
                R"({"x": {"_type": "choice", "_value": [{"_name": "A",
                    "y": {"_type": "randint", "_value": [0, 7]}}, {"_name": "B"}]}})")),
            "2 parameters, 1 of them in options of choices; 8 configurations");
}

TEST(SpaceText, SamplesAreRowsOrObjects) {
  const SearchSpace space = *SearchSpace::FromJson(kSpace);
  const std::vector<Parameters> samples = {
      {{"lr", 0.1}, {"rule", "legw"}, {"rule/legw/warmup", std::int64_t{3}}, {"name, or so", "c"}},
      {{"lr", 1.0}, {"rule", "none"}, {"name, or so", "a \"b\""}}};
  EXPECT_EQ(SamplesCsv(space, samples),
            "lr,rule,rule/legw/warmup,\"name, or so\"\n"
            "0.1,legw,3,c\n"
            "1.0,none,,\"a \"\"b\"\"\"\n");
  EXPECT_EQ(SamplesJson(space, samples),
            "{\"lr\":0.1,\"rule\":{\"_name\":\"legw\",\"warmup\":3},\"name, or so\":\"c\"}\n"
            "{\"lr\":1.0,\"rule\":{\"_name\":\"none\"},\"name, or so\":\"a \\\"b\\\"\"}\n");
}

}  // namespace
}  // namespace espalier
