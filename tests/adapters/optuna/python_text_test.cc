#include "adapters/optuna/dashboard/python_text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace espalier::optuna_dashboard {
namespace {

TEST(PythonText, FloatsAsReprHasThem) {
  EXPECT_EQ(PythonFloat(0), "0.0");
  EXPECT_EQ(PythonFloat(-0.0), "-0.0");
  EXPECT_EQ(PythonFloat(1), "1.0");
  EXPECT_EQ(PythonFloat(0.1), "0.1");
  EXPECT_EQ(PythonFloat(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(PythonFloat(0.0001), "0.0001");
  EXPECT_EQ(PythonFloat(0.00001), "1e-05");
  EXPECT_EQ(PythonFloat(-1.5e-7), "-1.5e-07");
  EXPECT_EQ(PythonFloat(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(PythonFloat(1e15), "1000000000000000.0");
  EXPECT_EQ(PythonFloat(1e16), "1e+16");
  EXPECT_EQ(PythonFloat(1e300), "1e+300");
  EXPECT_EQ(PythonFloat(12.5), "12.5");
  EXPECT_EQ(PythonFloat(INFINITY), "inf");
  EXPECT_EQ(PythonFloat(-INFINITY), "-inf");
  EXPECT_EQ(PythonFloat(NAN), "nan");
}

TEST(PythonText, ValuesAsStrHasThem) {
  const auto text = [](std::string_view json) {
    const PythonValue value = ReadPython(json);
    return value.type + " " + value.text;
  };
  EXPECT_EQ(text("null"), "NoneType None");
  EXPECT_EQ(text("true"), "bool True");
  EXPECT_EQ(text("3"), "int 3");
  EXPECT_EQ(text("123456789012345678901234567890"), "int 123456789012345678901234567890");
  EXPECT_EQ(text("1e5"), "float 100000.0");
  EXPECT_EQ(text("NaN"), "float nan");
  EXPECT_EQ(text("-Infinity"), "float -inf");
  EXPECT_EQ(text(R"("a\u00e9")"), "str aé");
  EXPECT_EQ(text(R"([1, "it's", [], {"a": {"b": null}, "c": [true, 2.0]}])"),
            R"(list [1, "it's", [], {'a': {'b': None}, 'c': [True, 2.0]}])");
  EXPECT_EQ(text(R"({"k": "x\n"})"), R"(dict {'k': 'x\n'})");
  EXPECT_EQ(text("not json"), "str not json");
}

TEST(PythonText, LongAttributesAreCutBetweenCharacters) {
  std::string json = "[\"";
  for (int i = 0; i < 2000; ++i) json += "é";
  json += "\"]";
  const std::string cut = AttributeText(json);
  EXPECT_EQ(cut.size(), 2u + 2 * 1022);
  EXPECT_EQ(cut.substr(cut.size() - 2), "é");
  EXPECT_EQ(AttributeText("\"" + std::string(3000, 'x') + "\"").size(), 3000u)
      << "strings are whole";
}

TEST(PythonText, BrowsersGetNoNaN) {
  EXPECT_EQ(StrictJson(R"({"a": [NaN, Infinity, -Infinity, 1.50, "NaN"]})"),
            R"({"a":[null,null,null,1.50,"NaN"]})");
  EXPECT_EQ(StrictJson("{"), "null");
}

}  // namespace
}  // namespace espalier::optuna_dashboard
