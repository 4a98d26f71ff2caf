#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "search_spaces/search_space.h"

namespace espalier {
namespace {

TEST(Catalog, EverySpaceParsesAndYieldsValidParameters) {
  int spaces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ESPALIER_CATALOG)) {
    SCOPED_TRACE(entry.path().filename().string());
    ASSERT_EQ(entry.path().extension(), ".json");
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    const auto space = SearchSpace::FromJson(text.str());
    ASSERT_TRUE(space.ok()) << space.status();
    Random random(1);
    EXPECT_TRUE(space->Validate(space->Sample(random)).ok());
    ++spaces;
  }
  EXPECT_GE(spaces, 3);
}

}  // namespace
}  // namespace espalier
