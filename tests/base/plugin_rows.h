#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "base/plugin.h"

namespace espalier {

// What every row of every table of plug-ins keeps to: lists show it on one line each, and an option
// that nobody gives has a value that could be given.
inline void ExpectTold(const std::vector<PluginInfo>& plugins) {
  EXPECT_FALSE(plugins.empty());
  for (const PluginInfo& plugin : plugins) {
    SCOPED_TRACE(std::string(plugin.name));
    EXPECT_GT(plugin.summary.size(), 20u);
    EXPECT_LT(plugin.summary.size(), 90u);
    EXPECT_EQ(plugin.summary.find('\n'), std::string_view::npos);
    EXPECT_NE(plugin.summary.back(), '.');
    for (const PluginOption& option : plugin.options) {
      SCOPED_TRACE(std::string(option.name));
      if (option.object) {
        EXPECT_TRUE(option.Takes(OptionValue::OfObject("{}"))) << option.Range();
      } else if (option.rows) {
        EXPECT_TRUE(option.Takes(OptionValue::OfRows({{1, 2}}))) << option.Range();
      } else if (option.wordy()) {
        EXPECT_TRUE(option.Takes(option.DefaultText())) << option.Range();
      } else if (!option.optional) {
        EXPECT_TRUE(option.Takes(option.default_value)) << option.Range();
      }
      EXPECT_FALSE(option.meaning.empty());
      EXPECT_LT(option.meaning.size(), 90u);
      EXPECT_NE(option.name, "name") << "a study file says by that which plug-in it means";
    }
  }
}

}  // namespace espalier
