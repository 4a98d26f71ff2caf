#include "adapters/nni/service/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "adapters/nni/service/submission.h"

namespace espalier::nni {
namespace {

using testing::HasSubstr;

constexpr char kKey[] = "k";

absl::StatusOr<ChannelRequest> Metric(const std::string& metric) {
  std::string quoted;
  for (const char c : metric) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return ReadChannelRequest(R"({"type": "metric", "metric": ")" + quoted + "\"}", "t1");
}

std::string Refusal(const std::string& metric) {
  return std::string(Metric(metric).status().message());
}

TEST(Channel, TheSecretIsTheTrialsOwn) {
  const std::string secret = ChannelSecret(kKey, "e", "t");
  EXPECT_EQ(secret.size(), 32U);
  EXPECT_EQ(secret, ChannelSecret(kKey, "e", "t"));
  EXPECT_NE(secret, ChannelSecret(kKey, "e", "u"));
  EXPECT_NE(secret, ChannelSecret(kKey, "f", "t"));
  EXPECT_NE(secret, ChannelSecret("l", "e", "t"));
  EXPECT_EQ(ChannelPath(kKey, "e", "t"), "/nni/v1/channel/e/t/" + secret);
  EXPECT_NE(NewChannelKey(), NewChannelKey());
  // As trials of an earlier release have it in their URL.
  EXPECT_EQ(secret, "65bcfcbf3ff18cac78aedf59c80f8bd7");
}

TEST(Channel, AnIntermediateValueIsAStepOfTheCurve) {
  const auto request =
      Metric(R"({"parameter_id": 4, "trial_job_id": "t1", "type": "PERIODICAL", "sequence": 3, )"
             R"("value": "{\"default\": 0.5, \"loss\": NaN}"})");
  ASSERT_TRUE(request.ok()) << request.status();
  const RecordReport& report = *request->report;
  EXPECT_EQ(report.key, "nni:metric:PERIODICAL:3");
  EXPECT_EQ(report.value,
            R"({"sequence":3,"parameter_id":4,"value":"{\"default\": 0.5, \"loss\": NaN}"})");
  EXPECT_EQ(report.step, 4);
  EXPECT_EQ(report.number, 0.5);
}

TEST(Channel, AFinalValueHasOnePlaceWhateverItsSequence) {
  const auto request =
      Metric(R"({"parameter_id": null, "type": "FINAL", "sequence": 2, "value": 1})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->report->key, "nni:metric:FINAL");
  EXPECT_EQ(request->report->value, R"({"sequence":2,"parameter_id":null,"value":"1"})");
  EXPECT_FALSE(request->report->step);
}

TEST(Channel, ANumberIsTheValueOrItsDefault) {
  EXPECT_EQ(NumberOf("0.25"), 0.25);
  EXPECT_EQ(NumberOf("-3"), -3);
  EXPECT_EQ(NumberOf(R"({"default": 1e-3, "x": []})"), 1e-3);
  EXPECT_EQ(NumberOf("-Infinity"), -std::numeric_limits<double>::infinity());
  for (const char* text : {"NaN", R"({"default": NaN})"}) {
    ASSERT_TRUE(NumberOf(text)) << text;
    EXPECT_TRUE(std::isnan(*NumberOf(text))) << text;
  }
  for (const char* text :
       {R"("0.5")", "true", "[1]", "{}", "", R"({"default": "0.5"})", "0.5 0.5"}) {
    EXPECT_FALSE(NumberOf(text)) << text;
  }
}

std::string Lists(int depth) {
  const auto n = static_cast<std::size_t>(depth);
  return std::string(n, '[') + std::string(n, ']');
}

// NNI's texts are JSON within JSON: each is a door of its own.
TEST(Channel, WhatNestsTooDeepIsRefusedAtEachLevelOfTexts) {
  const std::string report = R"({"type": "FINAL", "trial_job_id": "t1", )";
  EXPECT_TRUE(Metric(report + R"("value": ")" + Lists(64) + "\"}").ok());
  for (const int depth : {65, 100'000}) {
    for (const std::string& deep :
         {report + R"("value": ")" + Lists(depth) + "\"}",
          report + "\"value\": " + Lists(depth) + "}",
          report + R"("value": "1", "parameter_id": )" + Lists(depth) + "}",
          report + R"("value": "1", "other": )" + Lists(depth) + "}"}) {
      EXPECT_THAT(Refusal(deep), HasSubstr("values nest deeper than 64 levels")) << depth;
    }
    EXPECT_THAT(std::string(ReadChannelRequest(
                                R"({"type": "metric", "metric": )" + Lists(depth) + "}", "t1")
                                .status()
                                .message()),
                HasSubstr("the body: values nest deeper"));
    EXPECT_THAT(
        std::string(ReadSubmission(R"({"parameter": "{\"parameters\": )" + Lists(depth) + "}\"}")
                        .status()
                        .message()),
        HasSubstr("\"parameter\": values nest deeper"));
  }
  EXPECT_EQ(NumberOf(R"({"default": )" + Lists(100'000) + "}"), std::nullopt);
}

TEST(Channel, SaysWhatIsWrongWithAReport) {
  EXPECT_THAT(Refusal(R"({"type": "OTHER", "sequence": 0, "value": "1"})"), HasSubstr("OTHER"));
  EXPECT_THAT(Refusal(R"({"type": "FINAL", "sequence": 0})"), HasSubstr("\"value\" is missing"));
  EXPECT_THAT(Refusal(R"({"type": "FINAL", "sequence": -1, "value": "1"})"),
              HasSubstr("\"sequence\""));
  EXPECT_THAT(Refusal(R"({"type": "FINAL", "trial_job_id": "t2", "value": "1"})"),
              HasSubstr("channel of trial \"t1\""));
  EXPECT_THAT(Refusal("nothing"), HasSubstr("needs one JSON object"));
  EXPECT_THAT(std::string(ReadChannelRequest(R"({"type": "stop"})", "t").status().message()),
              HasSubstr("\"stop\""));
  const auto request = ReadChannelRequest(R"({"type": "request_parameter"})", "t");
  ASSERT_TRUE(request.ok());
  EXPECT_FALSE(request->report);
}

}  // namespace
}  // namespace espalier::nni
