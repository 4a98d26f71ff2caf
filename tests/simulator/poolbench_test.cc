#include "tuner/simulator/poolbench.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>

namespace espalier {
namespace {

constexpr double kSame = 1e-9;

void ExpectNext(std::istream& line, double actual, const std::string& what) {
  double expected = 0;
  ASSERT_TRUE(line >> expected) << what << " is missing";
  EXPECT_NEAR(actual, expected, kSame * std::max(1.0, std::abs(expected))) << what;
}

// poolbench.golden is what poolbench.py beside it prints.
TEST(Poolbench, GivesTheFiguresOfTheOriginal) {
  std::ifstream file(POOLBENCH_GOLDEN);
  ASSERT_TRUE(file) << POOLBENCH_GOLDEN;
  std::string text;
  std::getline(file, text);  // the heading
  int configurations = 0;
  for (; std::getline(file, text); ++configurations) {
    std::istringstream line(text);
    std::string rule;
    std::uint64_t seed = 0;
    int index = 0;
    line >> rule >> seed >> index;
    Random random(seed);
    PoolbenchConfiguration c;
    for (int i = 0; i <= index; ++i) c = SamplePoolbench(random);
    const Poolbench bench(rule == "sqrt" ? PoolbenchRule::kSqrt : PoolbenchRule::kLinear);
    SCOPED_TRACE(text.substr(0, 30));
    ExpectNext(line, c.log10_lr, "log10_lr");
    ExpectNext(line, c.log2_bs, "log2_bs");
    ExpectNext(line, c.log10_wd, "wd");
    ExpectNext(line, c.width, "width");
    ExpectNext(line, bench.FinalError(c), "final error");
    for (const int slots : {1, 2, 4, 5, 8, 16}) {
      ExpectNext(line, PoolbenchEpochSeconds(c, slots), "seconds of an epoch");
    }
    const std::vector<double> errors = bench.Errors(c);
    ASSERT_EQ(errors.size(), 81u);
    for (std::size_t epoch = 0; epoch < errors.size(); epoch += 20) {
      ExpectNext(line, errors[epoch], "error");
    }
  }
  EXPECT_EQ(configurations, 84);
}

TEST(Poolbench, DivergedTrialsStayWhereTheyBegan) {
  const Poolbench bench;
  PoolbenchConfiguration c{-0.5, 7, -3.5, 2};
  for (const double error : bench.Errors(c)) EXPECT_GT(error, 0.85);
  c.log10_lr = bench.BestLog10Lr(c);
  EXPECT_LT(bench.Errors(c).back(), kPoolbenchTarget);
}

}  // namespace
}  // namespace espalier
