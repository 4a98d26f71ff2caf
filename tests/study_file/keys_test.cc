#include "tuner/study_file/keys.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

TEST(StudyKeys, AreThoseOfThePageInItsOrder) {
  std::vector<std::string> rows;
  std::ifstream page(KEYS_PAGE);
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `")) rows.push_back(line);
  }
  std::vector<std::string> expected;
  for (const StudyKey& key : StudyKeys()) {
    expected.push_back(absl::StrCat("| `", std::string(key.name), "` | ",
                                    std::string(key.document.value), " | ",
                                    std::string(key.document.when_absent), " |"));
  }
  EXPECT_EQ(rows, expected);
}

TEST(StudyKeys, OfAStudyWithoutAnySayNothingThatIsNotTheDefault) {
  // Reading back what a key writes of a default leaves the default.
  const StudySpec none;
  const search_spaces_json::Json empty = search_spaces_json::Json::object();
  const OpenStudyFile file{.text = "{}", .json = empty, .label = "x", .folder = "/"};
  for (const StudyKey& key : StudyKeys()) {
    if (key.name == "name" || key.name == "command" || key.name == "directory") continue;
    const search_spaces_json::Json json = key.write(none);
    if (json.is_null()) continue;
    StudySpec read;
    ASSERT_TRUE(key.read(KeyValue(file, key.name, json), read).ok()) << key.name;
    read.names_policy = false;
    EXPECT_EQ(read, none) << key.name;
  }
}

}  // namespace
}  // namespace espalier
