#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/ids.h"
#include "base/shortened.h"
#include "base/status.h"
#include "google/protobuf/message.h"
#include "tuner/api/json.h"
#include "tuner/server/http/http_route.h"

namespace espalier {

// Mappings between HTTP calls and messages. Included by routes only.

template <typename Message>
HttpAnswer ToAnswer(const absl::StatusOr<Message>& result, int code = 200) {
  HttpAnswer answer{result.status(), ""};
  if (result.ok()) answer.body = MessageToJson(*result);
  answer.code = code;
  return answer;
}

inline HttpAnswer ToAnswer(const absl::Status& status) { return {status, ""}; }

// The body as a message. An empty one counts as {}. The keys `elsewhere` are given by the path or a
// header.
inline absl::Status ReadBody(const HttpCall& call, google::protobuf::Message& message,
                             const std::vector<std::string_view>& elsewhere) {
  return MessageFromJson(call.body.empty() ? "{}" : call.body, message, elsewhere);
}

// As much of what a path or a query says as an error repeats.
inline constexpr std::size_t kMaxQuoted = 100;

// The number that the path has under a name; `what` is it, and `needs` what is right.
inline absl::StatusOr<std::int64_t> IdOf(const HttpCall& call, const char* name, const char* what,
                                         const char* needs) {
  const std::string& text = call.path.at(name);
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error == std::errc() && end == text.data() + text.size() && id >= 0) return id;
  return absl::InvalidArgumentError(
      absl::StrCat(what, " \"", Shortened(text, kMaxQuoted), "\": needs ", needs));
}

// The id of the trial that the path names.
inline absl::StatusOr<std::int64_t> TrialIdOf(const HttpCall& call) {
  return IdOf(call, "trial_id", "trial id", "a number that ask or a list has named");
}

// The id of the study that the path names.
inline absl::StatusOr<StudyId> StudyIdOf(const HttpCall& call) {
  ESPALIER_ASSIGN_OR_RETURN(
      const std::int64_t id,
      IdOf(call, "study_id", "study id", "the number of a study, as /api/view/overview names it"));
  return StudyId(id);
}

// Whether a query says so: "?active" and "?active=1" do, "0" and "false" do not.
inline bool Flag(const HttpCall& call, const char* name, bool otherwise) {
  const auto given = call.query.find(name);
  if (given == call.query.end()) return otherwise;
  return given->second != "0" && given->second != "false";
}

}  // namespace espalier
