#include "tuner/server/grpc/protocol_check.h"

#include <gmock/gmock.h>

#include <string>

#include "base/protocol.h"
#include "tests/server/running_service.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// What the service says to a call of somebody who speaks like this.
grpc::Status Ask(RunningService& running, const std::string& protocol) {
  grpc::ClientContext context;
  context.AddMetadata(kProtocolHeader, protocol);
  v1::Pool pool;
  return running.stub->GetPool(&context, {}, &pool);
}

TEST(ProtocolCheck, AClientOfALaterReleaseIsRefusedByBothVersions) {
  RunningService running;
  EXPECT_TRUE(Ask(running, ProtocolText()).ok());
  EXPECT_TRUE(Ask(running, std::to_string(kProtocol + 1) + " 1 9.9.9").ok());
  const grpc::Status refused = Ask(running, "99 98 9.9.9");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(
      refused.error_message(),
      HasSubstr("this client speaks protocol 98 to 99 (release 9.9.9), this service speaks "));
  EXPECT_THAT(refused.error_message(),
              HasSubstr("(release " + Release() + "): upgrade this service"));
  EXPECT_EQ(Ask(running, "new").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(ProtocolCheck, AnAgentOfALaterReleaseIsRefusedByName) {
  RunningService running;
  grpc::ClientContext context;
  context.AddMetadata(kProtocolHeader, "99 98 9.9.9");
  const auto stream = running.stub->Agent(&context);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_node_name("n1");
  hello.mutable_hello()->set_slots(1);
  stream->Write(hello);
  v1::ServiceMessage message;
  EXPECT_FALSE(stream->Read(&message));
  const grpc::Status refused = stream->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("agent n1 speaks protocol 98 to 99"));
}

TEST(ProtocolCheck, TheServiceSaysWhatItSpeaks) {
  RunningService running;
  grpc::ClientContext context;
  v1::Pool pool;
  ASSERT_TRUE(running.stub->GetPool(&context, {}, &pool).ok());
  const auto& said = context.GetServerInitialMetadata();
  const auto header = said.find(kProtocolHeader);
  ASSERT_NE(header, said.end());
  EXPECT_EQ(std::string(header->second.data(), header->second.size()), ProtocolText());
}

}  // namespace
}  // namespace espalier
