// Messages of replicas, agents and clients: protobuf's bytes, and JSON for REST. The first byte
// says which.

#include "adapters/optuna/messages.h"

#include <google/protobuf/message.h>

#include <memory>

#include "base/json/parse_json.h"
#include "tests/api/answer_json.h"
#include "tests/fuzz/input.h"
#include "tuner.pb.h"
#include "tuner/api/agent_convert.h"
#include "tuner/api/json.h"
#include "tuner/messages/wire/replica_wire.h"

namespace espalier {
namespace {

template <typename Message>
bool Parse(std::string_view bytes, Message& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

void ReadAsReplicaMessage(std::string_view bytes) {
  v1::ReplicaMessage message;
  if (!Parse(bytes, message)) return;
  const std::optional<ReplicaMessage> read = FromProto(message);
  if (!read) return;
  const std::optional<ReplicaMessage> again = FromProto(ToProto(*read));
  ESPALIER_CHECK(again && again->index() == read->index(), "a message that is sent on is the same");
}

void ReadAsCommand(std::string_view bytes) {
  v1::ReplicaCommand command;
  if (!Parse(bytes, command)) return;
  const Membership membership = FromProto(command.regroup());
  ESPALIER_CHECK(FromProto(ToProto(membership).regroup()) == membership, "members stay");
  const Adoption adoption = FromProto(command.adopt());
  ESPALIER_CHECK(FromProto(ToProto(adoption).adopt()).replica == adoption.replica, "so do spares");
}

void ReadAsAgentMessage(std::string_view bytes) {
  v1::AgentMessage message;
  if (Parse(bytes, message)) static_cast<void>(FromProto(message));
}

void ReadAsOptunaTrial(std::string_view bytes) {
  optuna::Trial message;
  if (Parse(bytes, message)) static_cast<void>(optuna_storage::FromMessage(message));
}

void ReadAsOptunaStudy(std::string_view bytes) {
  optuna::CreateNewStudyRequest message;
  if (Parse(bytes, message)) static_cast<void>(optuna_storage::MakeSpec(message));
}

void ReadAsJson(std::string_view json) {
  const auto* file = v1::Study::descriptor()->file();
  const int type = fuzz::TakeByte(json) % file->message_type_count();
  const auto* prototype =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(file->message_type(type));
  const std::unique_ptr<google::protobuf::Message> message(prototype->New());
  if (!MessageFromJson(json, *message).ok()) return;
  const std::string written = MessageToJson(*message);
  ESPALIER_CHECK(!ParseJson(written, kMaxRecordDepth).is_discarded(), "an answer is JSON");
  const std::unique_ptr<google::protobuf::Message> again(prototype->New());
  if (MessageFromJson(WithoutNulls(written), *again).ok()) {
    ESPALIER_CHECK(MessageToJson(*again) == written, "and means the same as a request");
  }
}

constexpr void (*kReaders[])(std::string_view) = {ReadAsReplicaMessage, ReadAsCommand,
                                                  ReadAsAgentMessage,   ReadAsOptunaTrial,
                                                  ReadAsOptunaStudy,    ReadAsJson};

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::fuzz::ReadByFirstByte(espalier::fuzz::TextOf(data, size), espalier::kReaders);
  return 0;
}
