// What is in a report of a program that has the pages in it.

#include "tuner/cli/report/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/report/read_page.h"

namespace espalier {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Json Record(const std::string& page) {
  return Json::parse(Between(page, "<script type=\"application/json\" id=\"record\">", "</script>"),
                     nullptr,
                     /*allow_exceptions=*/false);
}

TEST(RecordFile, RunsAndStylesWhatItsRulesNameByTheirHashes) {
  const std::string page = Page(SampleStudy());
  const std::string rules = Rules(page);
  const std::string script = Script(page);
  const std::string style = Between(page, "<style>", "</style>");
  EXPECT_GT(script.size(), 100'000u);
  EXPECT_GT(style.size(), 1000u);
  EXPECT_THAT(rules, HasSubstr("default-src 'none'; script-src " + report::HashSource(script) +
                               "; style-src " + report::HashSource(style) + "; "));
  EXPECT_THAT(rules, HasSubstr("require-trusted-types-for 'script'; trusted-types 'none'"));
  EXPECT_THAT(rules, Not(HasSubstr("unsafe")));
  EXPECT_EQ(Count(page, "<script"), 2 + Count(script, "<script")) << "the record, and the page";
  EXPECT_EQ(Count(page, "<style"), 1 + Count(script, "<style"));
  // A reader of HTML would change or end it.
  for (const char* word : {"</script", "<!--", "\r"}) EXPECT_EQ(Count(script, word), 0) << word;
}

TEST(RecordFile, HoldsHostileTextsAsTheyAre) {
  for (const std::string text : kHostile) {
    const std::string page = Page(Hostile(text));
    EXPECT_EQ(Count(page, "<script"), 2 + Count(Script(page), "<script")) << text;
    const Json record = Record(page);
    ASSERT_FALSE(record.is_discarded()) << text;
    EXPECT_EQ(record.at("study").at("name"), text);
    EXPECT_EQ(record.at("facts").at(0).at("reason"), text);
  }
}

TEST(RecordFile, HasWhatTheServiceWouldAnswer) {
  const Json record = Record(Page(SampleStudy()));
  EXPECT_EQ(record.at("overview").at("role"), "view");
  EXPECT_EQ(record.at("overview").at("now"), kNow);
  EXPECT_EQ(record.at("overview").at("studies").at(0).at("best").at("value"), 0.91234);
  EXPECT_EQ(record.at("trials").at("total"), 5);
  EXPECT_EQ(record.at("facts").size(), 5u);
  EXPECT_EQ(record.at("decided"), SampleStudy().decisions_size());
  EXPECT_EQ(record.at("decisions").at("decisions").size(),
            static_cast<std::size_t>(SampleStudy().decisions_size()));
  const Json& curve = record.at("curves").at(0);
  EXPECT_EQ(curve.at("step"), Json({1, 1}));
  EXPECT_EQ(curve.at("at_ms"), Json({(kSampleStart + 2) * 1000, 1000}));
  EXPECT_EQ(curve.at("slot_ms"), Json({2000, 1000})) << "from 4 s on it holds two slots";
  EXPECT_EQ(curve.at("batch_size"), Json({64, 64, 64}));
  EXPECT_FALSE(curve.contains("progress")) << "none was told";
  EXPECT_TRUE(record.at("curves").at(1).at("y").at(0).is_null()) << "NaN";
  EXPECT_EQ(record.at("report").at("use").at("grown"), 2);
  EXPECT_EQ(record.at("report").at("sweep").at("rows").at(0).at(0), "scaling rule");
  EXPECT_FALSE(record.contains("comparison"));
}

TEST(RecordFile, HasAComparisonWhereThereIsOne) {
  const Json record =
      Record(Page(SampleStudy(), {.target = {}, .comparison = R"({"recorded":null,"runs":[]})"}));
  EXPECT_TRUE(record.at("comparison").at("runs").empty());
}

}  // namespace
}  // namespace espalier
