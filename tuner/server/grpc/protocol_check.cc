#include "tuner/server/grpc/protocol_check.h"

#include "base/protocol.h"

namespace espalier {

absl::Status CheckProtocol(const grpc::ServerContextBase& context, const std::string& who) {
  const auto header = context.client_metadata().find(kProtocolHeader);
  if (header == context.client_metadata().end()) {
    return AgreeOnProtocol({who}, ThisSpeaker("this service")).status();
  }
  const std::string text(header->second.data(), header->second.size());
  const absl::StatusOr<Speaker> speaker = SpeakerFrom(who, text);
  if (!speaker.ok()) return speaker.status();
  return AgreeOnProtocol(*speaker, ThisSpeaker("this service")).status();
}

void TellProtocol(grpc::ServerContextBase& context) {
  context.AddInitialMetadata(kProtocolHeader, ProtocolText());
}

}  // namespace espalier
