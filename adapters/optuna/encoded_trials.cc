#include "adapters/optuna/encoded_trials.h"

#include <google/protobuf/io/coded_stream.h>

#include <string>

#include "adapters/optuna/messages.h"

namespace espalier::optuna_storage {

namespace {

grpc::Slice ToSlice(const Trial& trial, const Study& study) {
  using google::protobuf::io::CodedOutputStream;
  constexpr std::uint32_t kLengthDelimited = 2;
  constexpr std::uint32_t kTag = optuna::GetTrialsReply::kTrialsFieldNumber << 3 | kLengthDelimited;
  const optuna::Trial message = ToMessage(trial, study);
  const std::size_t size = message.ByteSizeLong();
  const auto length = static_cast<std::uint32_t>(size);
  const std::size_t head =
      CodedOutputStream::VarintSize32(kTag) + CodedOutputStream::VarintSize32(length);
  grpc::Slice slice(head + size);
  auto* at = const_cast<std::uint8_t*>(slice.begin());
  at = CodedOutputStream::WriteVarint32ToArray(kTag, at);
  at = CodedOutputStream::WriteVarint32ToArray(length, at);
  message.SerializeWithCachedSizesToArray(at);
  return slice;
}

}  // namespace

grpc::Slice EncodedTrials::Encode(const Trial& trial, const Study& study) {
  if (!Ended(trial.state)) return ToSlice(trial, study);
  std::map<TrialId, grpc::Slice>& of_study = ended_[study.id];
  const auto known = of_study.find(trial.id);
  if (known != of_study.end()) return known->second;
  return of_study.emplace(trial.id, ToSlice(trial, study)).first->second;
}

void EncodedTrials::KeepOnly(const TunerState& state) {
  std::erase_if(ended_, [&](const auto& entry) { return !state.studies.contains(entry.first); });
}

}  // namespace espalier::optuna_storage
