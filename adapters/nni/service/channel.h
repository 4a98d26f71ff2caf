#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tuner/core/state/event.h"

namespace espalier::nni {

// NNI's HTTP trial command channel, without the HTTP. NNI's SDK sends no header, so the URL holds
// what proves that the caller is the trial: it follows from a key of the experiment, and is the
// same after a restart of the service. Pure but for what is new.

std::string NewChannelKey();   // 32 random bytes, hexadecimal
std::string NewIncarnation();  // 4

std::string ChannelSecret(std::string_view key, std::string_view experiment,
                          std::string_view trial);
std::string ChannelPath(std::string_view key, std::string_view experiment, std::string_view trial);

struct ChannelRequest {
  // None: the trial asks for its parameter.
  std::optional<RecordReport> report;  // without its trial
};

// What a trial PUTs: {"type": "request_parameter"} or {"type": "metric", "metric": text}. `trial`
// is the id that the metric must name, if it names one.
absl::StatusOr<ChannelRequest> ReadChannelRequest(std::string_view body, std::string_view trial);

// A value as a trial reported it, JSON as Python writes it: the number that it is, or that its
// "default" is, NaN and infinities included. None: there is no such number.
std::optional<double> NumberOf(const std::string& value);

}  // namespace espalier::nni
