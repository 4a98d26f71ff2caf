#include "tuner/cli/views/report/page.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/cli/views/sample_study.h"
#include "tuner/cli/views/report/markup.h"
#include "tuner/cli/views/report/tables.h"

namespace espalier {
namespace {

// The first tag that is not closed in order, or "".
std::string FirstUnbalancedTag(const std::string& html) {
  const std::set<std::string> empty = {"meta", "!DOCTYPE"};
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return html.substr(at, 40);
    std::string tag = html.substr(at + 1, end - at - 1);
    at = end;
    if (tag.back() == '/') continue;
    const bool closes = tag.front() == '/';
    const std::string name = tag.substr(closes, tag.find_first_of(" \n", 1) - closes);
    if (empty.contains(name)) continue;
    if (!closes) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return tag;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

std::string Page(const v1::StudyDetails& details) { return ReportPage(details, kSampleStart + 20); }

TEST(ReportPage, IsWellFormed) {
  EXPECT_EQ(FirstUnbalancedTag(Page(SampleStudy())), "");
  EXPECT_EQ(FirstUnbalancedTag(Page(v1::StudyDetails())), "");
}

TEST(ReportPage, HasARowForEachTrial) {
  const std::string page = Page(SampleStudy());
  for (int number = 0; number < 5; ++number) {
    EXPECT_NE(page.find("<tr id=\"trial-" + std::to_string(number) + "\""), std::string::npos);
  }
}

TEST(ReportPage, EscapesEverythingThatComesFromOutside) {
  v1::StudyDetails details = SampleStudy();
  const std::string evil = "<script>alert(\"1\")</script>";
  details.mutable_study()->set_name(evil);
  details.mutable_study()->set_metric(evil);
  details.mutable_study()->set_reason(evil);
  details.mutable_study()->set_study_json(evil);
  details.mutable_pool()->mutable_nodes(0)->set_name(evil);
  for (v1::Trial& trial : *details.mutable_trials()) {
    trial.set_reason(evil);
    trial.set_last_output(evil);
    trial.set_checkpoint(evil);
    trial.mutable_parameters(0)->set_name(evil);
    trial.mutable_parameters(1)->set_json(evil);
  }
  for (v1::Decision& decision : *details.mutable_decisions()) {
    decision.set_kind(evil);
    decision.set_reason(evil);
  }
  const std::string page = Page(details);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(FirstUnbalancedTag(page), "");
}

TEST(ReportPage, ShowsUtilisationAndResizesOfTheRecord) {
  const std::string page = Page(SampleStudy());
  EXPECT_NE(page.find("77.5 %"), std::string::npos);
  EXPECT_NE(page.find("<b>2 / 1</b>"), std::string::npos);
  EXPECT_NE(page.find("trial 0: 1 to 2 slots"), std::string::npos);
}

TEST(ReportPage, LoadsNothingFromOutside) {
  const std::string page = Page(SampleStudy());
  for (const char* word : {"http:", "https:", "src=", "@import"}) {
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  }
}

TEST(DecisionsTable, SaysHowManyThereAreInAll) {
  v1::StudyDetails details = SampleStudy();
  while (details.decisions_size() < 1000) *details.add_decisions() = details.decisions(0);
  EXPECT_NE(report::DecisionsTable(details).find("The last 300 of 1000 decisions"),
            std::string::npos);
}

TEST(AxisTicks, AreRoundNumbersInside) {
  EXPECT_EQ(report::AxisTicks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(report::AxisTicks(3, 3, 5), (std::vector<double>{3}));
}

TEST(Escape, LeavesNoMarkupBehind) {
  EXPECT_EQ(report::Escape("<a b=\"c\" d='e'>&\x01"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp; ");
}

}  // namespace
}  // namespace espalier
