// What replicas and agents hand over to those that come after them. The first byte says which text
// or message the rest is.

#include "trial_runner/agent/handover.h"

#include "handover.pb.h"
#include "tests/fuzz/input.h"
#include "trial_runner/agent/processes/frames.h"
#include "trial_runner/collectives/rendezvous/rendezvous_wire.h"
#include "trial_runner/control/parameters.h"
#include "trial_runner/elastic/accumulated_sums.h"
#include "trial_runner/elastic/state_description.h"
#include "trial_runner/elastic/training_position.h"

namespace espalier {
namespace {

void ReadAsPosition(std::string_view text) {
  const absl::StatusOr<TrainingPosition> position = TrainingPosition::Decode(text);
  if (!position.ok()) return;
  const std::string written = position->Encode();
  const absl::StatusOr<TrainingPosition> again = TrainingPosition::Decode(written);
  ESPALIER_CHECK(again.ok() && again->Encode() == written, "a position is handed on as it came");
  position->Noise(32);
  position->PastEvaluation({}, 2);
}

void ReadAsSums(std::string_view text) {
  AccumulatedSums sums;
  ESPALIER_CHECK(sums.Declare("loss", {"sum", "count"}).ok() && sums.Declare("hits", {"n"}).ok(),
                 "names of letters");
  const std::string before = sums.Encode();
  if (!sums.Adopt(text).ok()) {
    ESPALIER_CHECK(sums.Encode() == before, "what cannot be read changes nothing");
    return;
  }
  const std::string written = sums.Encode();
  ESPALIER_CHECK(sums.Restore(written).ok() && sums.Encode() == written, "sums stay as they came");
}

void ReadAsParameters(std::string_view text) {
  const absl::StatusOr<Parameters> parameters = Parameters::FromJson(text, "of the fuzzer");
  if (!parameters.ok()) return;
  ESPALIER_CHECK(Parameters::FromJson(parameters->Json(), "again").ok(), "parameters are JSON");
  static_cast<void>(parameters->Get("n", std::int64_t{0}));
  static_cast<void>(parameters->Get("n", 0.0));
  Parameters set;
  static_cast<void>(set.Set(text));
}

void ReadAsFrames(std::string_view bytes) {
  FrameReader whole;
  FrameReader pieces;
  whole.Append(bytes);
  while (!bytes.empty()) {
    pieces.Append(bytes.substr(0, 1));
    bytes.remove_prefix(1);
    const absl::StatusOr<std::optional<std::string>> piece = pieces.Next();
    if (piece.ok() && !*piece) continue;
    const absl::StatusOr<std::optional<std::string>> same = whole.Next();
    ESPALIER_CHECK(same.status() == piece.status(), "however frames come in pieces");
    if (!piece.ok()) return;
    ESPALIER_CHECK(*same == *piece, "they are the same");
  }
}

void ReadAsAgentHandover(std::string_view bytes) {
  const FileDescriptor file = fuzz::FileOf(bytes);
  const absl::StatusOr<v1::AgentHandover> read = ReadHandover(fuzz::PathOf(file));
  if (!read.ok()) return;
  DescriptorsOf(*read);
  const absl::StatusOr<FileDescriptor> written = WriteHandover(*read);
  ESPALIER_CHECK(written.ok(), "memory has room");
  ESPALIER_CHECK(ReadHandover(fuzz::PathOf(*written)).ok(), "an agent can be replaced again");
}

// What a state's readers ask for is decided by the program; here by the description's own first
// byte.
void ReadAsDescription(std::string_view bytes) {
  unsigned order = fuzz::TakeByte(bytes);
  StateDescription from(bytes);
  for (absl::Status read; read.ok(); order = order / 4 + 64) {
    switch (order % 4) {
      case 0:
        read = from.Integer().status();
        break;
      case 1:
        read = from.Real().status();
        break;
      case 2:
        read = from.Text().status();
        break;
      default:
        const absl::StatusOr<TensorForm> form = from.Form();
        read = form.status();
        if (!form.ok()) break;
        ESPALIER_CHECK(form->strides.empty() || form->strides.size() == form->shape.size(),
                       "an extent has its stride, or none has");
        double elements = 1;
        for (const std::int64_t extent : form->shape) elements *= static_cast<double>(extent);
        ESPALIER_CHECK(elements >= 0 && elements < 1e18, "elements can be counted");
    }
  }
}

// The secret is the fuzzer's too: it proves what it says, as a member that has gone wrong would.
void ReadAsRequest(std::string_view body) {
  using namespace rendezvous;
  const Conversation conversation{"secret", std::string(kNonceBytes, 'n')};
  static_cast<void>(conversation.ReadRequest(body, 1));
  static_cast<void>(conversation.ReadAnswer(body, 1));
  if (body.size() >= kHelloBytes) {
    ESPALIER_CHECK(!Proves(ReadHello(body.substr(0, kHelloBytes)), "secret"), "nobody guesses");
  }
  // The proof is the last of an answer, and not that of a request.
  const std::string answer = conversation.AnswerMessage(body, 1).substr(kSizeBytes);
  const std::optional<std::string_view> value = conversation.ReadAnswer(answer, 1);
  ESPALIER_CHECK(value && *value == body, "an answer reads as it was written");
  ESPALIER_CHECK(!conversation.ReadAnswer(answer, 2), "once");
  ESPALIER_CHECK(!conversation.ReadRequest(answer, 1), "and as nothing else");
  const std::string key(body.substr(0, body.size() / 2));
  const Request request{Operation::kSet, key, body};
  const std::string sent = conversation.RequestMessage(request, 1).substr(kSizeBytes);
  const std::optional<Request> read = conversation.ReadRequest(sent, 1);
  ESPALIER_CHECK(read && read->key == key && read->value == body, "so does a request");
}

constexpr void (*kReaders[])(std::string_view) = {
    ReadAsPosition,      ReadAsSums,    ReadAsParameters, ReadAsFrames,
    ReadAsAgentHandover, ReadAsRequest, ReadAsDescription};

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::fuzz::ReadByFirstByte(espalier::fuzz::TextOf(data, size), espalier::kReaders);
  return 0;
}
