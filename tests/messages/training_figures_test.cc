#include "tuner/messages/training_figures.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string_view>

namespace espalier {
namespace {

TEST(TrainingFigures, EveryRowHasNamesOfItsOwn) {
  std::set<std::string_view> names;
  std::set<std::string_view> metrics;
  std::set<std::string_view> labels;
  for (const FigureRow& row : kFigureRows) {
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(metrics.insert(row.metric).second) << row.metric;
    EXPECT_EQ(row.label.empty(), row.shown == ShownAs::kNothing) << row.name;
    EXPECT_TRUE(row.label.empty() || labels.insert(row.label).second) << row.label;
    for (const std::string_view name : {row.name, row.metric}) {
      EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), name.npos) << name;
    }
    ASSERT_NE(FindFigure(row.name), nullptr) << row.name;
    EXPECT_EQ(FindFigure(row.name)->figure, row.figure);
  }
  EXPECT_EQ(FindFigure("of_another_release"), nullptr);
}

TEST(TrainingFigures, EachIsKeptApart) {
  TrainingFigures figures;
  double next = 1;
  for (const FigureRow& row : kFigureRows) figures[row.figure] = next++;
  next = 1;
  for (const FigureRow& row : kFigureRows) EXPECT_EQ(figures[row.figure], next++) << row.name;
  TrainingFigures others = figures;
  EXPECT_EQ(others, figures);
  others[Figure::kSkippedSteps] = 0;
  EXPECT_NE(others, figures);
}

TEST(TrainingFigures, AreWholeNumbersWhereThatIsAsked) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  TrainingFigures figures;
  for (const auto& [told, whole] :
       std::initializer_list<std::pair<double, std::int64_t>>{{0, 0},
                                                              {2.9, 2},
                                                              {-2.9, -2},
                                                              {9007199254740991.0, kMost - 1},
                                                              {1e300, kMost},
                                                              {-1e300, -kMost}}) {
    figures[Figure::kMemory] = told;
    EXPECT_EQ(figures.Whole(Figure::kMemory), whole) << told;
  }
  figures[Figure::kMemory] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(figures.Whole(Figure::kMemory), 0);
}

TEST(TrainingFigures, AWayOfGradientsHasWordsOfItsOwn) {
  std::set<std::string_view> words;
  for (const auto transport :
       {GradientTransport::kNccl, GradientTransport::kHostUntilNccl, GradientTransport::kHost}) {
    EXPECT_TRUE(words.insert(TextOf(transport)).second);
  }
  EXPECT_FALSE(words.contains(""));
  EXPECT_EQ(TextOf(GradientTransport::kNone), "");
  EXPECT_EQ(TextOf(GradientTransport(99)), "");
}

}  // namespace
}  // namespace espalier
