#include "tuner/messages/wire/replica_wire.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace espalier {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::util::MessageDifferencer;

// Gives every field of a message, and of those within it, a value of its own; lists get two
// entries. So a field that one direction forgets, or takes for another, shows as a difference.
class Filler {
 public:
  void Fill(Message& message) {
    const Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (field.name() == "figures") continue;  // by names of a table: figures_wire_test.cc
      for (int n = 0; n < (field.is_repeated() ? 2 : 1); ++n) Set(message, field);
    }
  }

 private:
  void Set(Message& message, const FieldDescriptor& field) {
    const Reflection& r = *message.GetReflection();
    const bool list = field.is_repeated();
    ++next_;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return list ? r.AddInt32(&message, &field, next_) : r.SetInt32(&message, &field, next_);
      case FieldDescriptor::CPPTYPE_INT64:
        return list ? r.AddInt64(&message, &field, next_) : r.SetInt64(&message, &field, next_);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return list ? r.AddDouble(&message, &field, next_ + 0.5)
                    : r.SetDouble(&message, &field, next_ + 0.5);
      case FieldDescriptor::CPPTYPE_BOOL:
        return r.SetBool(&message, &field, true);
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = "text " + std::to_string(next_);
        return list ? r.AddString(&message, &field, text) : r.SetString(&message, &field, text);
      }
      case FieldDescriptor::CPPTYPE_ENUM:
        return r.SetEnumValue(&message, &field, field.enum_type()->value(1)->number());
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(list ? *r.AddMessage(&message, &field) : *r.MutableMessage(&message, &field));
      case FieldDescriptor::CPPTYPE_UINT32:
      case FieldDescriptor::CPPTYPE_UINT64:
      case FieldDescriptor::CPPTYPE_FLOAT:
        FAIL() << "a field of a type that this test does not know: " << field.full_name();
    }
  }

  int next_ = 0;
};

void ExpectSame(const Message& got, const Message& wanted) {
  std::string difference;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(wanted, got)) << wanted.GetTypeName() << ": " << difference;
}

TEST(ReplicaWire, TakesEveryFieldOfEveryMessageBothWays) {
  const std::set<std::string> for_the_agent = {"heartbeat", "parked", "greeting"};
  const Descriptor& type = *v1::ReplicaMessage::descriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& kind = *type.field(i);
    v1::ReplicaMessage message;
    Filler filler;
    filler.Fill(*message.GetReflection()->MutableMessage(&message, &kind));
    const std::optional<ReplicaMessage> read = FromProto(message);
    ASSERT_EQ(read.has_value(), !for_the_agent.contains(kind.name())) << kind.name();
    if (read) ExpectSame(ToProto(*read), message);
  }
}

TEST(ReplicaWire, TakesEveryFieldOfEveryCommandBothWays) {
  Filler filler;
  v1::ReplicaCommand regroup;
  filler.Fill(*regroup.mutable_regroup());
  ExpectSame(ToProto(FromProto(regroup.regroup())), regroup);
  v1::ReplicaCommand adopt;
  filler.Fill(*adopt.mutable_adopt());
  ExpectSame(ToProto(FromProto(adopt.adopt())), adopt);
  // RanksMeet is no replica's: agent_convert_test.cc, node_link_test.cc.
  EXPECT_EQ(v1::ReplicaCommand::descriptor()->field_count(), 3) << "a kind that is not mapped yet";
}

TEST(ReplicaWire, TakesEveryKindOfContactBothWays) {
  const auto& kinds = *v1::Contact::Kind_descriptor();
  for (int i = 0; i < kinds.value_count(); ++i) {
    v1::ReplicaMessage message;
    message.mutable_stuck()->add_contacts()->set_kind(
        static_cast<v1::Contact::Kind>(kinds.value(i)->number()));
    ExpectSame(ToProto(*FromProto(message)), message);
  }
}

TEST(ReplicaWire, FinishedHasAValueOnlyWhereOneWasSent) {
  v1::ReplicaMessage message;
  message.mutable_finished();
  EXPECT_EQ(std::get<ReplicaFinished>(*FromProto(message)).value, std::nullopt);
  message.mutable_finished()->set_value(0);
  EXPECT_EQ(std::get<ReplicaFinished>(*FromProto(message)).value, 0.0);
  EXPECT_FALSE(ToProto(ReplicaMessage(ReplicaFinished{})).finished().has_value());
}

TEST(ReplicaWire, ComparisonsAreToldWithProgressAndWithTheEnd) {
  const ReplicaChecks checks{.alike = 7, .norms = 2, .unlike = 1};
  ReplicaProgress progress;
  progress.checks = checks;
  const ReplicaFinished finished{
      .value = 0.5, .failure = "", .checks = checks, .unread = {"lr", "momentum"}};
  for (const ReplicaMessage& message : {ReplicaMessage(progress), ReplicaMessage(finished)}) {
    EXPECT_EQ(*FromProto(ToProto(message)), message);
  }
}

}  // namespace
}  // namespace espalier
