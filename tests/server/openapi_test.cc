#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tuner/messages/training_figures.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {
namespace {

TEST(OpenApi, DescribesEachTrainingFigureOfATrial) {
  const auto page = nlohmann::json::parse(OpenApiText());
  const auto& figures = page.at("components").at("schemas").at("Trial").at("properties");
  for (const FigureRow& row : kFigureRows) {
    EXPECT_TRUE(figures.contains(std::string(row.name))) << row.name;
  }
}

}  // namespace
}  // namespace espalier
