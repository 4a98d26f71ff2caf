#include "tuner/api/json.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/answer_json.h"
#include "tuner.pb.h"

namespace espalier {
namespace {

using testing::HasSubstr;

TEST(MessageToJson, PrintsEveryFieldWithNumbersAsNumbers) {
  v1::TellRequest tell;
  tell.set_trial_id(std::int64_t{1} << 60);
  tell.set_value(0.1);
  EXPECT_EQ(
      MessageToJson(tell),
      R"({"trial_id":1152921504606846976,"step":null,"value":0.1,"final":false,"state":"TRIAL_STATE_UNSPECIFIED","values":[],"rank":null,"ranks":null,"extra":{}})");
  tell.set_step(0);
  EXPECT_NE(MessageToJson(tell).find("\"step\":0"), std::string::npos);
}

TEST(MessageToJson, KeepsNanAndInfinitiesAsStrings) {
  v1::Decision at;
  at.set_at(std::numeric_limits<double>::quiet_NaN());
  EXPECT_NE(MessageToJson(at).find("\"at\":\"NaN\""), std::string::npos);
  at.set_at(-std::numeric_limits<double>::infinity());
  EXPECT_NE(MessageToJson(at).find("\"at\":\"-Infinity\""), std::string::npos);
}

TEST(MessageToJson, PrintsSmallNumbersAsShortAsTheyAre) {
  v1::SlotsTaken taken;
  taken.set_promise(0.41F);
  EXPECT_EQ(MessageToJson(taken), R"({"trial_id":0,"slots":0,"promise":0.41})");
  taken.set_promise(std::numeric_limits<float>::infinity());
  EXPECT_NE(MessageToJson(taken).find("\"promise\":\"Infinity\""), std::string::npos);
  EXPECT_NE(MessageToJson(v1::Decision()).find("\"figures\":null"), std::string::npos);
}

TEST(MessageToJson, EscapesTextAndSortsMaps) {
  v1::Study study;
  study.set_reason("a \"quote\" \\ and\na line\x01");
  (*study.mutable_trials_by_state())["WAITING"] = 2;
  (*study.mutable_trials_by_state())["COMPLETE"] = 1;
  const std::string json = MessageToJson(study);
  EXPECT_NE(json.find(R"("a \"quote\" \\ and\na line\u0001")"), std::string::npos);
  EXPECT_NE(json.find(R"("trials_by_state":{"COMPLETE":1,"WAITING":2})"), std::string::npos);
}

TEST(QuoteJson, PutsAMarkWhereThereIsNoUtf8) {
  EXPECT_EQ(QuoteJson("a\xff"
                      "b\xc3"),
            R"("a\ufffdb\ufffd")");
  EXPECT_EQ(QuoteJson("\xc0\x80"), R"("\ufffd\ufffd")") << "an overlong NUL";
  EXPECT_EQ(QuoteJson("äß€😀"), "\"äß€😀\"");
  for (const char* bad : {"\x80", "\xed\xa0\x80", "\xe0\x80\x80", "\xf5\x80\x80\x80"}) {
    const std::string quoted = QuoteJson(std::string(bad) + "a");
    EXPECT_TRUE(quoted.starts_with("\"\\ufffd")) << quoted;
    EXPECT_TRUE(quoted.ends_with("a\"")) << quoted;
    v1::StudyName name;
    EXPECT_TRUE(MessageFromJson("{\"name\": " + quoted + "}", name).ok()) << quoted;
  }
}

TEST(MessageToJson, PutsFiguresBesideTheFields) {
  v1::Trial trial;
  EXPECT_THAT(MessageToJson(trial), testing::Not(HasSubstr("figures")));
  (*trial.mutable_figures())["b"] = 0.5;
  (*trial.mutable_figures())["a"] = 2;
  EXPECT_THAT(MessageToJson(trial), HasSubstr("\"moved_bytes_total\":0,\"a\":2,\"b\":0.5,"));
}

TEST(MessageToJson, IsReadByTheProtobufReader) {
  v1::StudyDetails details;
  details.mutable_study()->set_name("mnist");
  details.mutable_study()->set_state(v1::STUDY_COMPLETE);
  v1::Trial& trial = *details.add_trials();
  trial.set_number(3);
  trial.set_value(1.5e-7);
  trial.add_values()->set_value(-2.25);
  trial.mutable_values(0)->set_goodput(1234.56F);
  v1::Decision& decision = *details.add_decisions();
  decision.mutable_figures()->set_gain(-0.41F);
  decision.mutable_figures()->add_from()->set_promise(0.1F);
  details.add_decisions()->set_kind("fail");
  trial.add_spans()->add_slots()->set_index(2);
  v1::StudyDetails read;
  ASSERT_TRUE(MessageFromJson(WithoutNulls(MessageToJson(details)), read).ok());
  EXPECT_EQ(read.SerializeAsString(), details.SerializeAsString());
}

std::string ErrorOf(const std::string& json, google::protobuf::Message& message,
                    std::initializer_list<std::string_view> elsewhere = {}) {
  const absl::Status status = MessageFromJson(json, message, elsewhere);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << json << ": " << status;
  return std::string(status.message());
}

TEST(MessageFromJson, ReadsWhatItIsGiven) {
  v1::TellRequest tell;
  ASSERT_TRUE(
      MessageFromJson(R"({"value": 1.5, "step": 7, "final": true, "values": [1, 2.5]})", tell)
          .ok());
  EXPECT_EQ(tell.step(), 7);
  EXPECT_EQ(tell.value(), 1.5);
  EXPECT_TRUE(tell.final());
  EXPECT_EQ(tell.values_size(), 2);
  v1::SlotsTaken taken;
  ASSERT_TRUE(MessageFromJson(R"({"promise": 0.41, "slots": 2})", taken).ok());
  EXPECT_EQ(taken.promise(), 0.41F);
  EXPECT_THAT(ErrorOf(R"({"promise": 1e39})", taken),
              HasSubstr("\"promise\": needs a number from"));
  v1::TellRequest absent;
  ASSERT_TRUE(MessageFromJson(R"({"final": null, "state": null})", absent).ok());
  EXPECT_FALSE(absent.has_value());
}

// It is not a wish for what comes where there is none, such as a verdict without a value.
TEST(MessageFromJson, NullIsNoNumber) {
  v1::ReportRequest report;
  EXPECT_EQ(ErrorOf(R"({"step": 3, "value": null})", report),
            "\"value\": needs a number, got null: where there is none, leave the key out");
  for (const char* key : {"trial_id", "step", "rank", "ranks"}) {
    EXPECT_THAT(ErrorOf("{\"" + std::string(key) + "\": null}", report),
                HasSubstr("\"" + std::string(key) + "\": needs a number, got null"));
  }
  v1::TellRequest tell;
  EXPECT_THAT(ErrorOf(R"({"values": null})", tell),
              HasSubstr("\"values\": needs numbers, got null"));
  EXPECT_THAT(ErrorOf(R"({"values": [1, null]})", tell),
              HasSubstr("\"values[1]\": needs a number"));
  v1::SetPoolPolicyRequest policy;
  EXPECT_THAT(ErrorOf(R"({"options": {"p": null}})", policy),
              HasSubstr("\"options.p\": needs a number"));
  v1::DrainNodeRequest drain;
  EXPECT_THAT(ErrorOf(R"({"within_s": null})", drain), HasSubstr("\"within_s\": needs a number"));
}

TEST(MessageFromJson, NamesTheKeyAndWhatItNeeds) {
  v1::TellRequest tell;
  EXPECT_EQ(
      ErrorOf(R"({"valu": 1})", tell),
      "\"valu\": unknown key, did you mean \"value\"? Known: trial_id, step, value, final, state, "
      "values, rank, ranks, extra");
  EXPECT_EQ(
      ErrorOf(R"({"trial_id": 1})", tell, {"trial_id"}),
      "\"trial_id\": unknown key. Known: step, value, final, state, values, rank, ranks, extra");
  EXPECT_THAT(ErrorOf(R"({"step": 1.5})", tell), HasSubstr("\"step\": needs an integer"));
  EXPECT_THAT(ErrorOf(R"({"step": "1"})", tell), HasSubstr("got \"1\""));
  EXPECT_THAT(ErrorOf(R"({"value": "1"})", tell), HasSubstr("\"value\": needs a number"));
  EXPECT_THAT(ErrorOf(R"({"values": [1, true]})", tell), HasSubstr("\"values[1]\""));
  EXPECT_THAT(ErrorOf(R"({"final": 1})", tell), HasSubstr("true or false"));
  EXPECT_THAT(ErrorOf(R"({"state": "done"})", tell), HasSubstr("TRIAL_COMPLETE"));
  EXPECT_THAT(ErrorOf(R"([1])", tell), HasSubstr("needs an object"));
  EXPECT_THAT(ErrorOf("{", tell), HasSubstr("malformed JSON"));
  EXPECT_THAT(ErrorOf(R"({"value": 1, "value": 2})", tell), HasSubstr("twice"));
}

TEST(MessageFromJson, KnowsNumbersThatJsonDoesNot) {
  const auto value = [](const std::string& word) {
    v1::ReportRequest report;
    EXPECT_TRUE(MessageFromJson("{\"value\": \"" + word + "\"}", report).ok()) << word;
    return report.value();
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const char* word : {"nan", "NaN", "NAN"}) EXPECT_TRUE(std::isnan(value(word)));
  for (const char* word : {"inf", "Infinity"}) EXPECT_EQ(value(word), infinity);
  for (const char* word : {"-inf", "-Infinity"}) EXPECT_EQ(value(word), -infinity);
}

TEST(MessageFromJson, KnowsEnumsByTheirShortNames) {
  for (const char* word : {"complete", "COMPLETE", "TRIAL_COMPLETE"}) {
    v1::TellRequest tell;
    ASSERT_TRUE(MessageFromJson(std::string("{\"state\": \"") + word + "\"}", tell).ok());
    EXPECT_EQ(tell.state(), v1::TRIAL_COMPLETE);
  }
}

TEST(MessageFromJson, TextsThatAreJsonStandAsThemselves) {
  v1::EnqueueRequest request;
  ASSERT_TRUE(
      MessageFromJson(R"({"parameters": {"x": 1.0, "n": 2}, "user_attributes": {"a": [1, null]}})",
                      request)
          .ok());
  EXPECT_EQ(request.parameters(), R"({"x":1.0,"n":2})");
  EXPECT_EQ(request.user_attributes().at("a"), "[1,null]");
  EXPECT_EQ(MessageToJson(request),
            R"({"study":"","parameters":{"x":1.0,"n":2},"user_attributes":{"a":[1,null]},)"
            R"("request_key":""})");
  (*request.mutable_user_attributes())["a"] = "NaN";
  request.clear_parameters();
  EXPECT_THAT(MessageToJson(request),
              HasSubstr(R"("parameters":null,"user_attributes":{"a":"NaN"})"))
      << "what only Python takes for JSON is a text";
}

}  // namespace
}  // namespace espalier
