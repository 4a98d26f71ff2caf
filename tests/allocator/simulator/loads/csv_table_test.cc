#include "allocator/simulator/loads/csv_table.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

std::string Written(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/csv_table_test.csv";
  std::ofstream(path) << text;
  return path;
}

TEST(CsvTable, FindsColumnsByName) {
  const auto table = CsvTable::Read(Written("a,b,c\n1,x,2.5\n3,y,4\n"), {"c", "a"});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 2u);
  EXPECT_EQ(*table->Number(0, 0), 2.5);
  EXPECT_EQ(*table->Count(1, 1), 3);
}

TEST(CsvTable, NamesFileLineAndWhatWouldBeRight) {
  const auto message = [](const absl::Status& status) { return std::string(status.message()); };
  EXPECT_THAT(message(CsvTable::Read(Written("a,b\n1\n"), {"a"}).status()),
              ::testing::HasSubstr("line 2: needs 2 values, got 1"));
  EXPECT_THAT(message(CsvTable::Read(Written("a,b\n"), {"d"}).status()),
              ::testing::HasSubstr("needs a column \"d\"; it has a, b"));
  const auto table = CsvTable::Read(Written("a\n-1\nx\n"), {"a"});
  EXPECT_THAT(message(table->Count(0, 0).status()),
              ::testing::HasSubstr("line 2: \"a\" needs a whole number >= 0, got \"-1\""));
  EXPECT_THAT(message(table->Number(1, 0).status()),
              ::testing::HasSubstr("line 3: \"a\" needs a number, got \"x\""));
  EXPECT_EQ(CsvTable::Read("/nowhere.csv", {}).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace espalier
