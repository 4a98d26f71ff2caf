// Options of plug-ins that are words, true or false, or plug-ins themselves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "base/plugin.h"

namespace espalier {
namespace {

enum class Restart { kNone, kIpop, kBipop };

const PluginInfo kSearch = {
    .name = "search",
    .summary = "an example",
    .options = {{.name = "margin", .default_value = 1, .meaning = "whether", .flag = true},
                {.name = "restart",
                 .default_value = 1,
                 .meaning = "how",
                 .words = {"none", "ipop", "bipop"}},
                {.name = "sigma", .default_value = 0.5, .meaning = "how far"},
                {.name = "around", .meaning = "of what", .plugin = "median"}}};

OptionValues ReadSearch(const Options& given, const TextOptions& texts = {}) {
  const auto values = ReadOptions("sampler", kSearch, given, texts);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : OptionValues({});
}

std::string RefusalOfSearch(const Options& given) {
  return std::string(ReadOptions("sampler", kSearch, given).status().message());
}

TEST(WordOption, IsTheWordGivenElseTheDefault) {
  EXPECT_EQ(ReadSearch({}).Chosen<Restart>("restart"), Restart::kIpop);
  EXPECT_EQ(ReadSearch({{"restart", "bipop"}}).Chosen<Restart>("restart"), Restart::kBipop);
  EXPECT_EQ(ReadSearch({{"restart", "none"}}).Chosen<Restart>("restart"), Restart::kNone);
  EXPECT_EQ(ReadSearch({}, {{"restart", {"bipop"}}}).Chosen<Restart>("restart"), Restart::kBipop);
}

TEST(WordOption, IsRefusedWithTheWordsAndTheNearest) {
  EXPECT_EQ(RefusalOfSearch({{"restart", "ipo"}}),
            "sampler \"search\": option \"restart\" needs none, ipop or bipop, got \"ipo\", did "
            "you mean \"ipop\"?");
  EXPECT_EQ(RefusalOfSearch({{"restart", "always"}}),
            "sampler \"search\": option \"restart\" needs none, ipop or bipop, got \"always\"");
  EXPECT_EQ(RefusalOfSearch({{"restart", 1}}),
            "sampler \"search\": option \"restart\" needs none, ipop or bipop, got 1");
  EXPECT_EQ(RefusalOfSearch({{"sigma", "wide"}}),
            "sampler \"search\": option \"sigma\" needs a number >= 0, got \"wide\"");
}

TEST(FlagOption, TakesTrueAndFalseAndOneAndZero) {
  EXPECT_TRUE(ReadSearch({}).Flag("margin"));
  EXPECT_FALSE(ReadSearch({{"margin", false}}).Flag("margin"));
  EXPECT_FALSE(ReadSearch({{"margin", 0}}).Flag("margin"));
  EXPECT_TRUE(ReadSearch({{"margin", 1}}).Flag("margin"));
  EXPECT_EQ(RefusalOfSearch({{"margin", 2}}),
            "sampler \"search\": option \"margin\" needs true or false, got 2");
  EXPECT_EQ(RefusalOfSearch({{"margin", "yes"}}),
            "sampler \"search\": option \"margin\" needs true or false, got \"yes\"");
  EXPECT_EQ(RefusalOfSearch({{"sigma", true}}),
            "sampler \"search\": option \"sigma\" needs a number >= 0, got true");
}

TEST(ObjectOption, IsTheObjectGivenElseAnEmptyOne) {
  const PluginInfo plugin = {.name = "search",
                             .summary = "an example",
                             .options = {{.name = "inner", .meaning = "what", .object = true}}};
  const OptionValue given = OptionValue::OfObject(R"json({"n": 3})json");
  EXPECT_EQ(ReadOptions("sampler", plugin, {})->Object("inner"), "{}");
  EXPECT_EQ(ReadOptions("sampler", plugin, {{"inner", given}})->Object("inner"),
            R"json({"n": 3})json");
  EXPECT_EQ(given.ToText(), R"json({"n": 3})json");
  EXPECT_FALSE(given == OptionValue(R"json({"n": 3})json"));
  for (const OptionValue& other : {OptionValue("word"), OptionValue(1)}) {
    EXPECT_THAT(ReadOptions("sampler", plugin, {{"inner", other}}).status().message(),
                testing::HasSubstr("option \"inner\" needs an object, got "));
  }
  EXPECT_EQ(RefusalOfSearch({{"sigma", given}}),
            "sampler \"search\": option \"sigma\" needs a number >= 0, got {\"n\": 3}");
  EXPECT_EQ(RefusalOfSearch({{"restart", given}}),
            "sampler \"search\": option \"restart\" needs none, ipop or bipop, got {\"n\": 3}");
  EXPECT_EQ(RefusalOfSearch({{"around", given}}),
            "sampler \"search\": option \"around\" needs the name of one, and options of it, got "
            "{\"n\": 3}");
}

TEST(RowsOption, IsListsOfEquallyManyNumbers) {
  const PluginInfo plugin = {.name = "search",
                             .summary = "an example",
                             .options = {{.name = "points", .meaning = "which", .rows = true}}};
  const auto why_not = [&plugin](const OptionValue& given) {
    return std::string(ReadOptions("sampler", plugin, {{"points", given}}).status().message());
  };
  const OptionValue given = OptionValue::OfRows({{1, 0.5}, {0, 3}});
  EXPECT_TRUE(ReadOptions("sampler", plugin, {})->Rows("points").empty());
  EXPECT_EQ(ReadOptions("sampler", plugin, {{"points", given}})->Rows("points"), given.Rows());
  EXPECT_EQ(given.ToText(), "[[1, 0.5], [0, 3]]");
  EXPECT_FALSE(given == OptionValue(1));
  EXPECT_FALSE(given == OptionValue::OfRows({{1, 0.5}}));
  EXPECT_EQ(why_not(OptionValue::OfRows({{1, 2}, {3}})),
            "sampler \"search\": option \"points\" needs lists of equally many numbers, got "
            "[[1, 2], [3]]");
  for (const OptionValue& other : {OptionValue(3), OptionValue("word"), OptionValue::OfRows({}),
                                   OptionValue::OfRows({{}}), OptionValue::OfRows({{INFINITY}})}) {
    EXPECT_THAT(why_not(other), testing::HasSubstr("needs lists of equally many numbers, got "));
  }
  EXPECT_EQ(RefusalOfSearch({{"sigma", given}}),
            "sampler \"search\": option \"sigma\" needs a number >= 0, got [[1, 0.5], [0, 3]]");
}

TEST(PluginThatIsAnOption, HasItsOwnOptionsBehindItsName) {
  EXPECT_EQ(ReadSearch({}).PluginName("around"), "median");
  EXPECT_TRUE(ReadSearch({}).PluginOptions("around").empty());
  const OptionValues asha =
      ReadSearch({{"around", "asha"}, {"around.eta", 4}, {"around.late", true}});
  EXPECT_EQ(asha.PluginName("around"), "asha");
  EXPECT_EQ(asha.PluginOptions("around"), (Options{{"eta", 4}, {"late", true}}));
  EXPECT_EQ(RefusalOfSearch({{"around", 3}}),
            "sampler \"search\": option \"around\" needs the name of one, and options of it, got "
            "3");
  EXPECT_EQ(
      RefusalOfSearch({{"sigma.eta", 3}}),
      "sampler \"search\" has no option \"sigma.eta\"; it has margin, restart, sigma, around");
}

TEST(OptionValue, IsReadFromACommandLineAndWrittenBack) {
  for (const char* text : {"0.25", "4", "true", "false", "ipop"}) {
    EXPECT_EQ(OptionValue::OfText(text).ToText(), text);
  }
  EXPECT_TRUE(OptionValue::OfText("true").IsFlag());
  EXPECT_FALSE(OptionValue::OfText("1").IsFlag());
  EXPECT_EQ(OptionValue(true), OptionValue(1));
  EXPECT_FALSE(OptionValue("true") == OptionValue(true));
}

TEST(PluginOption, TellsRangeAndDefaultInWords) {
  const auto& [margin, restart, sigma, around] =
      std::tie(kSearch.options[0], kSearch.options[1], kSearch.options[2], kSearch.options[3]);
  EXPECT_EQ(margin.DefaultText(), "true");
  EXPECT_EQ(margin.Range(), "true or false");
  EXPECT_EQ(restart.DefaultText(), "ipop");
  EXPECT_EQ(restart.Range(), "none, ipop or bipop");
  EXPECT_EQ(sigma.DefaultText(), "0.5");
  EXPECT_EQ(around.DefaultText(), "median");
}

}  // namespace
}  // namespace espalier
