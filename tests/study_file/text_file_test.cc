#include "tuner/study_file/text_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/storage/scratch_folder.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

TEST(WithoutComments, PutsBlanksInTheirPlace) {
  EXPECT_EQ(WithoutComments("{\"a\": 1, // \"one\"\n/* two\n*/\"b\": 2}//"),
            "{\"a\": 1,         \n      \n  \"b\": 2}  ");
  EXPECT_EQ(WithoutComments("1/**/2/*/*/3//"), "1    2     3  ");
}

TEST(WithoutComments, LeavesTextsAsTheyAre) {
  const std::string text = R"({"a": "http://x/*", "b\"//": "\\", "c": "/**/"})";
  EXPECT_EQ(WithoutComments(text), text);
  for (const char* broken : {"/", "/* open", "\"//", "\"\\", "a / b"}) {
    EXPECT_EQ(WithoutComments(broken), broken);
  }
}

TEST(ReadStudyFile, TakesComments) {
  ScratchFolder folder;
  std::ofstream(folder.File("s.json")) << R"({
    // what a trial runs
    "command": ["echo", "//"], "trials": 3, /* enough */
    "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}
  })";
  const auto spec = ReadStudyFile(folder.File("s.json"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->command.back(), "//");
  EXPECT_EQ(WriteStudy(*spec).find("enough"), std::string::npos);
  EXPECT_TRUE(ReadForService(folder.File("s.json")).ok());
}

}  // namespace
}  // namespace espalier
