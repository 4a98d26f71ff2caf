// What is compiled here and what is in protobuf's library lay messages out alike, with each
// sanitizer (cmake/library_layout.inc).

#include <google/protobuf/api.pb.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/struct.pb.h>
#include <gtest/gtest.h>

#include <string>

namespace espalier {
namespace {

// An empty message of a type of the library's own takes, by what the library says, what it takes
// here.
template <typename Message>
void ExpectSame() {
  EXPECT_EQ(Message::default_instance().SpaceUsedLong(), sizeof(Message))
      << Message::descriptor()->full_name();
}

TEST(LibraryLayout, IsThatOfTheLibrary) {
  ExpectSame<google::protobuf::Struct>();  // holds a map
  ExpectSame<google::protobuf::Value>();
  ExpectSame<google::protobuf::ListValue>();
  ExpectSame<google::protobuf::Api>();
  ExpectSame<google::protobuf::FileDescriptorProto>();
}

TEST(LibraryLayout, AMapIsReadWhereTheLibraryHasWrittenIt) {
  google::protobuf::Struct message;
  ASSERT_TRUE(
      message.ParseFromString(std::string("\n\x05\n\x01k\x12\x00", 7)));  // {"k": a value of none}
  ASSERT_EQ(message.fields_size(), 1);
  EXPECT_EQ(message.fields().at("k").kind_case(), google::protobuf::Value::KIND_NOT_SET);
  (*message.mutable_fields())["l"].set_bool_value(true);
  EXPECT_EQ(message.SerializeAsString().size(), 7U + 9U);
}

}  // namespace
}  // namespace espalier
