#include "tuner/cli/views/report/page.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cli/views/sample_study.h"
#include "tuner/cli/views/report/axis.h"
#include "tuner/cli/views/report/colors.h"
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

TEST(ReportPage, MasksTheEnvironmentForWhomeverItIsGivenTo) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_study()->set_study_json(R"({"name":"n","env":{"API_KEY":"secret-value"}})");
  const std::string page = Page(details);
  EXPECT_EQ(page.find("secret-value"), std::string::npos);
  EXPECT_NE(page.find("API_KEY"), std::string::npos);
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

TEST(ReportPage, ShowsTheStudysNotice) {
  v1::StudyDetails details = SampleStudy();
  EXPECT_EQ(Page(details).find("Note: "), std::string::npos);
  details.mutable_study()->set_notice("nobody asked for \"lr\"");
  EXPECT_NE(Page(details).find("Note: nobody asked for &quot;lr&quot;"), std::string::npos);
}

TEST(DecisionsTable, SaysHowManyThereAreInAll) {
  v1::StudyDetails details = SampleStudy();
  while (details.decisions_size() < 1000) *details.add_decisions() = details.decisions(0);
  EXPECT_NE(report::DecisionsTable(details).find("The last 300 of 1000 decisions"),
            std::string::npos);
}

TEST(ReportPage, IsOnItsStudy) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_study()->set_name("a<b");
  EXPECT_TRUE(IsReportOn("a<b", Page(details)));
  EXPECT_FALSE(IsReportOn("a", Page(details)));
  EXPECT_FALSE(IsReportOn("a<b", "a<b"));
}

TEST(AxisTicks, AreRoundNumbersInside) {
  EXPECT_EQ(report::AxisTicks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(report::AxisTicks(3, 3, 5), (std::vector<double>{3}));
}

TEST(TimeTicks, AreRoundInTheirUnit) {
  EXPECT_EQ(report::TimeTicks(0, 100, 8), (std::vector<double>{0, 15, 30, 45, 60, 75, 90}));
  EXPECT_EQ(report::TimeTicks(3500, 7300, 5), (std::vector<double>{3600, 4500, 5400, 6300, 7200}));
  EXPECT_EQ(report::TimeTicks(0, 2, 4), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(report::TimeTicks(0, 86400 * 40.0, 4).at(1), 86400 * 10.0);
  EXPECT_EQ(report::TimeTicks(7, 7, 5), (std::vector<double>{7}));
}

TEST(Labels, AreDistinct) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(report::ValueLabels({0.1, 0.2, 0.1 + 0.2}), (Texts{"0.1", "0.2", "0.3"}));
  EXPECT_EQ(report::ValueLabels({0.99990, 0.99992, 0.99994}),
            (Texts{"0.9999", "0.99992", "0.99994"}));
  EXPECT_EQ(report::TimeLabels({0, 30, 60, 90}), (Texts{"0.0s", "30s", "1m00s", "1m30s"}));
  EXPECT_EQ(report::TimeLabels({33.8, 34, 34.2}), (Texts{"33.8s", "34.0s", "34.2s"}));
  EXPECT_EQ(report::TimeLabels({59.5, 60, 60.5}), (Texts{"59.5s", "1m00.0s", "1m00.5s"}));
  EXPECT_EQ(report::TimeLabels({3600, 3610}), (Texts{"1h00m00s", "1h00m10s"}));
}

TEST(FencedRange, IsCloseToTheValues) {
  for (const auto& [values, low, high] : {std::tuple(std::vector<double>{0.9, 0.9}, 0.8, 1.0),
                                          {{0.2, 0.9}, 0.1, 1.0},
                                          {{-3e-7}, -4e-7, -2e-7},
                                          {{2e9, 2e9}, 1.8e9, 2.2e9},
                                          {{0}, -1, 1}}) {
    const report::Range range = report::FencedRange(values, true);
    EXPECT_GE(range.low, low);
    EXPECT_LE(range.high, high);
    EXPECT_LT(range.low, values.front());
    EXPECT_GT(range.high, values.front());
  }
}

TEST(TrialColors, OfTheBestAreTheirsAlone) {
  v1::StudyDetails details;
  for (int number = 0; number < 40; ++number) {
    v1::Trial* trial = details.add_trials();
    trial->set_number(number);
    trial->set_state(v1::TRIAL_COMPLETE);
    trial->set_value(number % 8);  // those of equal colour in a palette of eight win
  }
  const report::TrialColors colors(details);
  std::map<std::string, int> uses;
  for (const v1::Trial& trial : details.trials()) ++uses[colors.Of(trial.number()).fill];
  for (std::size_t i = 0; i < report::kStrongColors; ++i) {
    EXPECT_EQ(uses[report::StrongColor(i).fill], 1) << i;
  }
  EXPECT_STREQ(colors.Of(0).fill, report::StrongColor(0).fill);
  EXPECT_STREQ(colors.Of(8).fill, report::StrongColor(1).fill);
}

TEST(ReportPage, NamesTheStepOfTheValueBesideIt) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_trials(0)->set_value(0.9);
  EXPECT_NE(Page(details).find("<td class=\"n\">0.9</td><td class=\"n\">3</td>"),
            std::string::npos);
}

TEST(Escape, LeavesNoMarkupBehind) {
  EXPECT_EQ(report::Escape("<a b=\"c\" d='e'>&\x01"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp; ");
}

}  // namespace
}  // namespace espalier
