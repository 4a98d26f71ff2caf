#include "tuner/core/samplers/cma_es.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "search_spaces/search_space.h"
#include "tests/core/samplers/optuna/recorded.h"
#include "tuner/core/samplers/cma_margin.h"
#include "tuner/core/samplers/numeric_axis.h"

namespace espalier::samplers {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using CmaNumbers = std::vector<double>;

// The spaces of record_cmaes.py. Whole numbers on a logarithmic scale are multiples of 1.
const char* const kMixed = R"({
  "x": {"_type": "uniform", "_value": [-5, 10]}, "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
  "depth": {"_type": "randint", "_value": [1, 13]},
  "width": {"_type": "qloguniform", "_value": [16, 1024, 1]},
  "drop": {"_type": "quniform", "_value": [0, 0.6, 0.1]},
  "y": {"_type": "uniform", "_value": [0, 1]}})";
const char* const kPlain = R"({
  "a": {"_type": "uniform", "_value": [-5, 10]}, "b": {"_type": "uniform", "_value": [-5, 10]},
  "c": {"_type": "uniform", "_value": [-5, 10]}, "d": {"_type": "uniform", "_value": [-5, 10]}})";

const espalier::testing::Recorded& Cmaes() {
  static const espalier::testing::Recorded recorded(ESPALIER_RECORDED_CMAES);
  return recorded;
}

MatrixXd MatrixOf(const CmaNumbers& numbers, Index columns) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(numbers.data(), static_cast<Index>(numbers.size()) / columns,
                                    columns);
}

CmaEs InTheMiddle(Index dimensions, CmaVariant variant) {
  const auto population = CmaPopulation(static_cast<std::size_t>(dimensions));
  return CmaEs({VectorXd::Constant(dimensions, 0.5), 1.0 / 6, {}}, population, variant);
}

// Trials, a row each, in generations: each sorted by its losses.
template <typename AfterEach>
void TellAll(const MatrixXd& points, const CmaNumbers& losses, CmaEs& cma, AfterEach after_each) {
  const auto population = cma.population();
  for (std::size_t first = 0; first + population <= losses.size(); first += population) {
    std::vector<std::size_t> order(population);
    std::iota(order.begin(), order.end(), first);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return losses[a] < losses[b]; });
    MatrixXd generation(points.cols(), static_cast<Index>(population));
    for (std::size_t i = 0; i < population; ++i) {
      generation.col(static_cast<Index>(i)) = points.row(static_cast<Index>(order[i])).transpose();
    }
    cma.Tell(generation, losses[order.front()], losses[order.back()]);
    after_each();
  }
}

void ExpectLearnt(const CmaEs& cma, const std::string& name) {
  const Index n = cma.mean().size();
  const MatrixXd mean = MatrixOf(Cmaes()[name + ".mean"], 1);
  const MatrixXd covariance = MatrixOf(Cmaes()[name + ".covariance"], n);
  const double sigma = Cmaes()[name + ".sigma"].front();
  EXPECT_LT((cma.mean() - mean).norm(), 1e-6 * mean.norm());
  EXPECT_NEAR(cma.sigma(), sigma, 1e-6 * sigma);
  EXPECT_LT((cma.Covariance() - covariance).norm(), 1e-6 * covariance.norm());
}

// Ten thousand draws, by what share of each coordinate is below deciles of 20,000 of cmaes'.
void ExpectDrawsAlike(const CmaEs& cma, const std::string& name) {
  constexpr int kDraws = 10'000;
  const MatrixXd deciles = MatrixOf(Cmaes()[name + ".deciles"], 9);
  Random random(3);
  MatrixXd below = MatrixXd::Zero(deciles.rows(), 9);
  for (int i = 0; i < kDraws; ++i) {
    const VectorXd draw = cma.Draw(random);
    for (Index d = 0; d < 9; ++d) {
      below.col(d) += (draw.array() < deciles.col(d).array()).matrix().cast<double>();
    }
  }
  for (Index d = 0; d < 9; ++d) {
    const double share = 0.1 * static_cast<double>(d + 1);
    for (Index i = 0; i < below.rows(); ++i) {
      EXPECT_NEAR(below(i, d) / kDraws, share, 0.025) << "coordinate " << i;
    }
  }
}

CmaEs ToldAll(const std::string& name, const char* space_json, CmaVariant variant) {
  const SearchSpace space = *SearchSpace::FromJson(space_json);
  const auto n = static_cast<Index>(space.dimensions().size());
  MatrixXd points = MatrixOf(Cmaes()[name + ".params"], n);
  for (Index i = 0; i < n; ++i) {
    const Distribution& distribution = space.dimensions()[static_cast<std::size_t>(i)].distribution;
    const auto axis = NumericAxis::Of(distribution, NumericAxis::Steps::kCells);
    for (double& at : points.col(i)) at = axis->Place(at);
  }
  CmaEs cma = InTheMiddle(n, variant);
  TellAll(points, Cmaes()[name + ".losses"], cma, [] {});
  return cma;
}

TEST(CmaEs, LearnsWhatCmaesDoes) {
  const CmaEs cma = ToldAll("full", kMixed, CmaVariant::kFull);
  ExpectLearnt(cma, "full");
  ExpectDrawsAlike(cma, "full");
}

TEST(CmaEs, LearnsWhatCmaesDoesWithAdaptedRates) {
  const CmaEs cma = ToldAll("adapted", kPlain, CmaVariant::kAdaptedRates);
  ExpectLearnt(cma, "adapted");
  ExpectDrawsAlike(cma, "adapted");
}

TEST(CmaEs, LearnsWhatCmaesDoesWithADiagonal) {
  const CmaEs cma = ToldAll("separable", kPlain, CmaVariant::kSeparable);
  ExpectLearnt(cma, "separable");
  ExpectDrawsAlike(cma, "separable");
}

TEST(CmaMargin, LearnsWhatCmaesDoes) {
  CmaEs cma = InTheMiddle(5, CmaVariant::kFull);
  CmaMargin margin(cma, {{2, 12}, {3, 2}, {4, 7}});
  TellAll(MatrixOf(Cmaes()["margin.drawn"], 5), Cmaes()["margin.losses"], cma,
          [&] { margin.Correct(cma); });
  ExpectLearnt(cma, "margin");
  for (std::size_t s = 0; s < margin.stepped().size(); ++s) {
    const double stretch = Cmaes()["margin.stretch"][margin.stepped()[s].dimension];
    EXPECT_NEAR(margin.stretch(s), stretch, 1e-6 * stretch);
  }
  // How often each value is drawn, of 10,000 draws and cmaes' 20,000.
  constexpr int kDraws = 10'000;
  const char* const names[] = {"margin.shares.depth", "margin.shares.flag", "margin.shares.drop"};
  std::vector<CmaNumbers> drawn(3, CmaNumbers(12));
  Random random(4);
  for (int i = 0; i < kDraws; ++i) {
    const VectorXd draw = cma.Draw(random);
    for (std::size_t s = 0; s < 3; ++s) {
      const double at = draw[static_cast<Index>(margin.stepped()[s].dimension)];
      ++drawn[s][static_cast<std::size_t>(margin.IndexOf(cma, s, at))];
    }
  }
  for (std::size_t s = 0; s < 3; ++s) {
    const CmaNumbers& shares = Cmaes()[names[s]];
    for (std::size_t k = 0; k < shares.size(); ++k) {
      EXPECT_NEAR(drawn[s][k] / kDraws, shares[k], 0.015) << names[s] << " " << k;
    }
  }
}

TEST(CmaMargin, GivesATrialsValueACoordinateThatIsRoundedToIt) {
  CmaEs cma = InTheMiddle(5, CmaVariant::kFull);
  CmaMargin margin(cma, {{2, 12}, {3, 2}, {4, 7}});
  TellAll(MatrixOf(Cmaes()["margin.drawn"], 5), Cmaes()["margin.losses"], cma,
          [&] { margin.Correct(cma); });
  Random random(5);
  for (std::size_t s = 0; s < 3; ++s) {
    for (double index = 0; index < margin.stepped()[s].count; ++index) {
      for (int i = 0; i < 20; ++i) {
        const double at = margin.CoordinateOf(cma, s, index, random);
        EXPECT_NEAR(margin.IndexOf(cma, s, at + 1e-9), index, 1) << s;
        EXPECT_TRUE(margin.IndexOf(cma, s, at + 1e-9) == index ||
                    margin.IndexOf(cma, s, at - 1e-9) == index)
            << s << " " << index;
      }
    }
  }
  // What is drawn, rounded and given a coordinate again, is distributed as what was drawn.
  CmaNumbers drawn, given;
  for (int i = 0; i < 4000; ++i) {
    const double at = cma.Draw(random)[2];
    drawn.push_back(at);
    given.push_back(margin.CoordinateOf(cma, 0, margin.IndexOf(cma, 0, at), random));
  }
  std::sort(drawn.begin(), drawn.end());
  std::sort(given.begin(), given.end());
  const double spread = cma.sigma() * std::sqrt(cma.Variances()[2]);
  for (std::size_t i = 200; i < 4000; i += 200) EXPECT_NEAR(drawn[i], given[i], 0.15 * spread);
}

// After how many generations a new optimizer stops.
std::size_t GenerationsUntilStop(std::uint64_t seed, double (*loss)(const VectorXd&)) {
  CmaEs cma = InTheMiddle(2, CmaVariant::kFull);
  Random random(seed);
  while (!cma.ShouldStop() && cma.generation() < 1000) {
    MatrixXd points(2, static_cast<Index>(cma.population()));
    std::vector<std::pair<double, Index>> losses;
    for (Index i = 0; i < points.cols(); ++i) {
      points.col(i) = cma.Draw(random);
      losses.emplace_back(loss(points.col(i)), i);
    }
    std::sort(losses.begin(), losses.end());
    MatrixXd sorted(2, points.cols());
    for (Index i = 0; i < points.cols(); ++i) {
      sorted.col(i) = points.col(losses[static_cast<std::size_t>(i)].second);
    }
    cma.Tell(sorted, losses.front().first, losses.back().first);
  }
  return cma.generation();
}

TEST(CmaEs, StopsWhenCmaesDoes) {
  const auto flat = GenerationsUntilStop(1, [](const VectorXd&) { return 1.0; });
  EXPECT_EQ(static_cast<double>(flat), Cmaes()["stop.flat"].front());
  CmaNumbers ours;
  CmaNumbers theirs = Cmaes()["stop.sphere"];
  for (std::uint64_t seed = 1; seed <= theirs.size(); ++seed) {
    ours.push_back(static_cast<double>(GenerationsUntilStop(
        seed, [](const VectorXd& x) { return (x.array() - 0.4).square().sum(); })));
  }
  std::sort(ours.begin(), ours.end());
  std::sort(theirs.begin(), theirs.end());
  EXPECT_NEAR(ours[20], theirs[20], 5);
  EXPECT_NEAR(ours[5], theirs[5], 6);
  EXPECT_NEAR(ours[35], theirs[35], 6);
}

TEST(CmaEs, StartsWarmAsCmaesDoes) {
  const MatrixXd points = MatrixOf(Cmaes()["warm.points"], 3).transpose();
  const CmaStart start = WarmStart(points);
  EXPECT_LT((start.mean - MatrixOf(Cmaes()["warm.mean"], 1)).norm(), 1e-9);
  EXPECT_NEAR(start.sigma, Cmaes()["warm.sigma"].front(), 1e-9);
  EXPECT_LT((start.covariance - MatrixOf(Cmaes()["warm.covariance"], 3)).norm(), 1e-9);
  const CmaEs cma(start, 6, CmaVariant::kFull);
  EXPECT_LT((cma.Covariance() - start.covariance).norm(), 1e-9);
  EXPECT_EQ(WarmStart(points.leftCols(1)).mean, points.col(0));
}

TEST(CmaEs, FollowsAPointFarAwayNoFurtherThanADraw) {
  CmaEs near = InTheMiddle(4, CmaVariant::kFull);
  CmaEs far = near;
  Random random(6);
  MatrixXd points(4, static_cast<Index>(near.population()));
  for (Index i = 0; i < points.cols(); ++i) points.col(i) = near.Draw(random);
  for (const double distance : {10.0, 1e9}) {
    far = near;
    points.col(0) = VectorXd::Constant(4, 0.5 + distance);
    far.Tell(points, 0, 1);
    EXPECT_LT(far.sigma(), 1.5);
    EXPECT_LT((far.mean() - near.mean()).norm(), 1.5);
  }
}

TEST(CmaEs, IsNotSpoilt) {
  CmaEs cma = InTheMiddle(3, CmaVariant::kAdaptedRates);
  const MatrixXd points = MatrixXd::Constant(3, static_cast<Index>(cma.population()), 0.5);
  for (int i = 0; i < 500; ++i) cma.Tell(points, 0, 0);  // all at one place, without any spread
  EXPECT_TRUE(cma.mean().allFinite());
  EXPECT_TRUE(cma.Covariance().allFinite());
  EXPECT_GT(cma.sigma(), 0);
  Random random(1);
  EXPECT_TRUE(cma.Draw(random).allFinite());
}

}  // namespace
}  // namespace espalier::samplers
