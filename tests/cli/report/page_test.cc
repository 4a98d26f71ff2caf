#include "tuner/cli/report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/report/read_page.h"
#include "tuner/cli/report/markup.h"
#include "tuner/cli/report/record_file.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ReportPage, EscapesEverythingThatComesFromOutside) {
  for (const std::string text : kHostile) {
    const std::string page = Page(Hostile(text));
    const std::string script = Script(page);
    for (const char* word : {"<!--", "<img", "<b>", "onload=\"a", "<script>alert"}) {
      EXPECT_EQ(Count(page, word), Count(script, word)) << text;
    }
    EXPECT_LE(Count(page, "</noscript"), 1) << text;
    EXPECT_EQ(Count(page, "</title"), 1) << text;
  }
}

TEST(ReportPage, KnowsTheHashOfNothing) {
  EXPECT_EQ(report::HashSource(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
}

TEST(ReportPage, HasTablesForReadersWithoutScripts) {
  const std::string page = Page(SampleStudy());
  const std::string tables = Between(page, "<body>", "</body>");
  EXPECT_THAT(tables, HasSubstr("<th>trial</th><th>state</th><th>accuracy</th>"));
  EXPECT_THAT(tables, HasSubstr("<td>0</td><td>COMPLETE</td><td>0.9123</td><td>2</td>"
                                "<td>lr=0.01 batch_size=64 scaling_rule=adascale</td>"));
  EXPECT_THAT(tables, HasSubstr("<td>PRUNED</td>"));
  EXPECT_THAT(tables, HasSubstr(" decisions.</p>"));
  EXPECT_THAT(tables, HasSubstr("77.5 %"));
  EXPECT_THAT(tables, HasSubstr("<h2>By scaling rule and batch size</h2>"));
}

TEST(ReportPage, OfAProgramWithoutPagesIsTheTables) {
  const std::string page =
      report::RecordFile({.title = "a<b", .tables = "<table></table>\n", .record = "{}"}, {});
  EXPECT_THAT(page, HasSubstr("<table></table>\n<p>The <code>tuner</code> that wrote this was "
                              "built without the pages"));
  EXPECT_EQ(Count(page, "<script"), 0);
  EXPECT_EQ(Count(page, "<noscript"), 0);
  EXPECT_THAT(Rules(page), HasSubstr(report::HashSource(Between(page, "<style>", "</style>"))));
}

TEST(ReportPage, MasksTheEnvironmentForWhomeverItIsGivenTo) {
  v1::StudyDetails details = SampleStudy();
  for (
      const char* file :
      {R"json({"name":"n","env":{"API_KEY":"secret-value"}})json",
       R"json({"name":"n","command":["a"],"search_space":{},"env":{"API_KEY":"secret-value"}})json",
       "API_KEY secret-value"}) {
    details.mutable_study()->set_study_json(file);
    EXPECT_THAT(Page(details), Not(HasSubstr("secret-value"))) << file;
  }
}

TEST(ReportPage, LoadsNothingFromOutside) {
  const std::string page = Page(SampleStudy());
  const std::string script = Script(page);
  for (const char* word : {"http:", "https:", "src=", "@import", "url("}) {
    EXPECT_EQ(Count(page, word), Count(script, word)) << word;
  }
}

TEST(ReportPage, RefusesWhatIsNoRecordOfOneStudy) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_trials(1)->set_number(7);
  const absl::StatusOr<std::string> page = ReportPage(details, kNow);
  EXPECT_EQ(page.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(page.status().message()), HasSubstr("has trial 7 as number 1"));
  details = SampleStudy();
  details.mutable_trials(1)->set_id(details.trials(0).id());
  EXPECT_EQ(ReportPage(details, kNow).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ReportPage, OfAStudyWithoutTrialsIsAPageToo) {
  EXPECT_THAT(Page(v1::StudyDetails()), HasSubstr("0 trials"));
}

TEST(ReportPage, IsOnItsStudy) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_study()->set_name("a<b");
  EXPECT_TRUE(IsReportOn("a<b", Page(details)));
  EXPECT_FALSE(IsReportOn("a", Page(details)));
  EXPECT_FALSE(IsReportOn("a<b", "a<b"));
}

TEST(Escape, LeavesNoMarkupBehind) {
  EXPECT_EQ(report::Escape("<a b=\"c\" d='e'>&\x01"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp; ");
}

}  // namespace
}  // namespace espalier
