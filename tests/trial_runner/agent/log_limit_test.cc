#include "trial_runner/agent/log_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/storage/scratch_folder.h"

namespace espalier {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::int64_t kLimit = 64 << 10;

class TrimLogTest : public testing::TestWithParam<TrimBy> {
 protected:
  std::string Content() const {
    std::ostringstream content;
    content << std::ifstream(path_).rdbuf();
    return content.str();
  }

  ScratchFolder folder_;
  const std::string path_ = folder_.File("replica-1.log");
};

TEST_P(TrimLogTest, KeepsBothEndsAsOftenAsItGrows) {
  std::ofstream program(path_, std::ios::app);  // as a replica's descriptor
  std::string last;
  for (int line = 0; line < 40000; ++line) {
    program << (last = absl::StrCat("line ", line, "\n"));
    if (line % 10000 != 9999) continue;
    program.flush();
    const std::uintmax_t before = std::filesystem::file_size(path_);
    ASSERT_TRUE(TrimLog(path_, kLimit, GetParam()).ok());
    EXPECT_LT(std::filesystem::file_size(path_), before);
  }
  const std::string content = Content();
  EXPECT_LE(content.size(), static_cast<std::size_t>(kLimit));
  EXPECT_THAT(content, StartsWith("line 0\nline 1\n"));
  const std::size_t notice =
      content.find("\n[output is left out here: the log has a limit of 65536");
  ASSERT_NE(notice, std::string::npos);
  EXPECT_EQ(content.find("left out", notice + 20), std::string::npos) << "once";
  EXPECT_EQ(content.find('\0'), std::string::npos);
  EXPECT_THAT(content, EndsWith(absl::StrCat("line 39998\n", last)));
  // Nothing of the newest half of the limit is lost.
  for (int line = 38000; line < 40000; ++line) {
    ASSERT_THAT(content, HasSubstr(absl::StrCat("\nline ", line, "\n")));
  }
}

INSTANTIATE_TEST_SUITE_P(, TrimLogTest, testing::Values(TrimBy::kAnyMeans, TrimBy::kCopy));

TEST_F(TrimLogTest, LeavesOthersAsTheyAre) {
  std::ofstream(path_) << std::string(kLimit, 'x');
  EXPECT_TRUE(TrimLog(path_, kLimit).ok());
  EXPECT_EQ(Content(), std::string(kLimit, 'x'));
  EXPECT_TRUE(TrimLog(folder_.File("absent"), kLimit).ok());
  // A link, which the trial may have made, could lead anywhere.
  std::ofstream(path_, std::ios::app) << "y";
  std::filesystem::create_symlink(path_, folder_.File("replica-2.log"));
  EXPECT_TRUE(TrimLog(folder_.File("replica-2.log"), kLimit).ok());
  EXPECT_THAT(Content(), Not(HasSubstr("left out")));
}

}  // namespace
}  // namespace espalier
