#include "base/plugin.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/base/plugin_rows.h"

namespace espalier {
namespace {

// A kind of plug-in with one option of each sort, made of its options and a word.
struct Lamp {
  double watts = 0;
  std::int64_t arms = 0;
  std::string room;
};
using Lamps = PluginTable<Lamp, std::string>;

PluginRow<Lamp, std::string> Chandelier() {
  return {
      {.name = "chandelier",
       .summary = "as many arms as it is given, and a candle on each",
       .options =
           {{.name = "arms",
             .default_value = 5,
             .least = 1,
             .whole = true,
             .meaning = "arms around it"},
            {.name = "watts", .default_value = 40, .most = 1000, .meaning = "what a candle takes"},
            {.name = "dimmed",
             .default_value = 0.5,
             .most = 1,
             .open = true,
             .meaning = "share of the watts"}}},
      [](const OptionValues& options,
         const std::string& room) -> absl::StatusOr<std::unique_ptr<Lamp>> {
        if (options["watts"] > 100 && options.Whole("arms") > 9) {
          return OptionNeeds("watts", "at most 100 with more than 9 arms", options["watts"]);
        }
        return std::make_unique<Lamp>(
            Lamp{options["watts"] * options["dimmed"], options.Whole("arms"), room});
      }};
}

PluginRow<Lamp, std::string> Candle() {
  return {{.name = "candle", .summary = "burns at both ends, and takes no options"},
          [](const OptionValues&, const std::string& room) {
            return std::make_unique<Lamp>(Lamp{0, 0, room});
          }};
}

const Lamps& Table() {
  static const Lamps table("lamp", {Chandelier(), Candle()});
  return table;
}

std::string ErrorOf(const std::string& name, const Options& options) {
  return std::string(Table().Make(name, options, "hall").status().message());
}

TEST(PluginTable, KnowsItsRowsInTheirOrder) {
  EXPECT_EQ(Table().Names(), (std::vector<std::string>{"chandelier", "candle"}));
  EXPECT_EQ(Table().Infos()[0].options[1].name, "watts");
  ExpectTold(Table().Infos());
}

TEST(PluginTable, MakesWithWhatIsGivenAndTheDefaultsOfTheRest) {
  const auto lamp = Table().Make("chandelier", {{"arms", 7}}, "hall");
  ASSERT_TRUE(lamp.ok()) << lamp.status();
  EXPECT_EQ((*lamp)->arms, 7);
  EXPECT_EQ((*lamp)->watts, 20);
  EXPECT_EQ((*lamp)->room, "hall");
}

TEST(PluginTable, UnknownNamesListTheKnown) {
  EXPECT_EQ(ErrorOf("lantern", {}), "lamp \"lantern\" is unknown; known are chandelier, candle");
  EXPECT_EQ(ErrorOf("chandelier", {{"legs", 3}}),
            "lamp \"chandelier\" has no option \"legs\"; it has arms, watts, dimmed");
  EXPECT_EQ(ErrorOf("candle", {{"legs", 3}}),
            "lamp \"candle\" has no option \"legs\"; it takes none");
}

TEST(PluginTable, ValuesStayInTheirRange) {
  EXPECT_EQ(ErrorOf("chandelier", {{"arms", 0}}),
            "lamp \"chandelier\": option \"arms\" needs a whole number >= 1, got 0");
  EXPECT_EQ(ErrorOf("chandelier", {{"arms", 2.5}}),
            "lamp \"chandelier\": option \"arms\" needs a whole number >= 1, got 2.5");
  EXPECT_EQ(ErrorOf("chandelier", {{"watts", 1001}}),
            "lamp \"chandelier\": option \"watts\" needs a number from 0 to 1000, got 1001");
  EXPECT_EQ(ErrorOf("chandelier", {{"dimmed", 1}}),
            "lamp \"chandelier\": option \"dimmed\" needs a number > 0 and < 1, got 1");
  EXPECT_EQ(ErrorOf("chandelier", {{"watts", 1000}, {"dimmed", 0.999}}), "");
}

TEST(PluginTable, NoOptionTakesWhatIsNotFinite) {
  const PluginOption any = {.name = "any", .least = -1e300, .meaning = ""};
  EXPECT_TRUE(any.Takes(1e300));
  EXPECT_FALSE(any.Takes(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(any.Takes(std::numeric_limits<double>::quiet_NaN()));
  const PluginOption whole = {.name = "whole", .whole = true, .meaning = ""};
  EXPECT_FALSE(whole.Takes(1e16)) << "would not be exact";
}

TEST(PluginTable, ANumberMayBeLeftOut) {
  const PluginInfo fuse = {.name = "fuse",
                           .summary = "burns through",
                           .options = {{.name = "amperes",
                                        .least = -std::numeric_limits<double>::infinity(),
                                        .meaning = "at which it does",
                                        .optional = true}}};
  EXPECT_EQ(ReadOptions("lamp", fuse, {})->Given("amperes"), std::nullopt);
  EXPECT_EQ(ReadOptions("lamp", fuse, {{"amperes", -16}})->Given("amperes"), -16);
  EXPECT_EQ(fuse.options.front().Range(), "a number");
  EXPECT_EQ(fuse.options.front().DefaultText(), "");
}

TEST(PluginTable, SaysWhichPlugInRefusesOptionsThatDoNotGoTogether) {
  EXPECT_EQ(ErrorOf("chandelier", {{"arms", 10}, {"watts", 200}}),
            "lamp \"chandelier\": option \"watts\" needs at most 100 with more than 9 arms, got "
            "200");
}

}  // namespace
}  // namespace espalier
