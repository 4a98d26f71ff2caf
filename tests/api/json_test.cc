#include "tuner/api/json.h"

#include <limits>

#include "gtest/gtest.h"
#include "tuner.pb.h"

namespace espalier {
namespace {

TEST(MessageToJson, PrintsEveryFieldWithNumbersAsNumbers) {
  v1::TellRequest tell;
  tell.set_trial_id(std::int64_t{1} << 60);
  tell.set_value(0.1);
  EXPECT_EQ(MessageToJson(tell),
            R"({"trial_id":1152921504606846976,"step":null,"value":0.1,"final":false})");
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
}

TEST(MessageToJson, IsReadByTheProtobufReader) {
  v1::StudyDetails details;
  details.mutable_study()->set_name("mnist");
  details.mutable_study()->set_state(v1::STUDY_COMPLETE);
  v1::Trial& trial = *details.add_trials();
  trial.set_number(3);
  trial.set_value(1.5e-7);
  trial.add_values()->set_value(-2.25);
  trial.add_spans()->add_slots()->set_index(2);
  v1::StudyDetails read;
  ASSERT_TRUE(MessageFromJson(MessageToJson(details), read).ok());
  EXPECT_EQ(read.SerializeAsString(), details.SerializeAsString());
}

TEST(MessageFromJson, RefusesUnknownKeysAndBadText) {
  v1::TellRequest tell;
  EXPECT_TRUE(absl::IsInvalidArgument(MessageFromJson(R"({"valeu": 1})", tell)));
  EXPECT_TRUE(absl::IsInvalidArgument(MessageFromJson("{", tell)));
  ASSERT_TRUE(MessageFromJson(R"({"value": 1.5, "step": 7, "final": true})", tell).ok());
  EXPECT_EQ(tell.step(), 7);
  EXPECT_TRUE(tell.final());
}

}  // namespace
}  // namespace espalier
