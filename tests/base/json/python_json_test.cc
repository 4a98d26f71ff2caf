#include "base/json/python_json.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/base/json/zero_bytes.h"

namespace espalier {
namespace {

std::string Again(const std::string& text) {
  rapidjson::Document document;
  EXPECT_FALSE(ParsePythonJson(text, document).IsError()) << text;
  return PythonJson(document);
}

TEST(PythonJson, IsWrittenAsItWasRead) {
  for (const std::string text :
       {"1", "\"a\"", "null", "[]", "{}", R"([1,[],{},[[2.5]],{"a":{"b":[true]},"c":null}])",
        "[NaN,Infinity,-Infinity]", R"({"":"\u0000","é":"\"\\"})"}) {
    EXPECT_EQ(Again(text), text);
  }
}

TEST(PythonJson, MayHaveAnyDepth) {
  constexpr std::size_t kDepth = 100'000;
  const std::string lists = std::string(kDepth, '[') + std::string(kDepth, ']');
  EXPECT_TRUE(Again(lists) == lists);
}

TEST(PythonJson, ReadsTheNearestDouble) {
  for (const char* text : {"12345678901234690578e190", "0.1e-300", "1.7976931348623157e308"}) {
    const std::string once = Again(text);
    EXPECT_EQ(Again(once), once) << text;
    EXPECT_EQ(std::stod(once), std::stod(text)) << text;
  }
}

TEST(PythonJson, AZeroIsOneWithAnyExponent) {
  for (const char* text : {"0e40", "0E+300", "-0e99", "0.0e-40", "0.000e301", "0e-2147483647"}) {
    rapidjson::Document document;
    EXPECT_FALSE(ParsePythonJson(text, document).IsError()) << text;
    ASSERT_TRUE(document.IsDouble()) << text;
    EXPECT_EQ(document.GetDouble(), 0) << text;
  }
}

TEST(PythonJson, IntegersThatFitAreIntegers) {
  for (const std::string text : {"0", "-1", "4294967296", "-9223372036854775808",
                                 "9223372036854775807", "18446744073709551615"}) {
    rapidjson::Document document;
    EXPECT_FALSE(ParsePythonJson(text, document).IsError()) << text;
    EXPECT_TRUE(document.IsUint64() || document.IsInt64()) << text;
    EXPECT_EQ(PythonJson(document), text);
  }
  EXPECT_EQ(Again("18446744073709551616"), "18446744073709553000.0");
}

TEST(PythonJson, AZeroByteIsNoEnd) {
  for (const char* text : {"1@", "NaN@", "[1]@ garbage", R"({"a": "@"})"}) {
    const std::string whole = WithZeroBytes(text);
    rapidjson::Document document;
    EXPECT_TRUE(ParsePythonJson(whole, document).IsError()) << text;
    rapidjson::BaseReaderHandler<> handler;
    EXPECT_TRUE(ReadPythonJson(whole, handler).IsError()) << text;
  }
  rapidjson::Document document;
  EXPECT_EQ(ParsePythonJson(WithZeroBytes("[1]@ garbage"), document).Offset(), 3u);
}

}  // namespace
}  // namespace espalier
