#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "tuner/web/feed/revision_log.h"

namespace espalier {

// What is sent to pages that follow the service, as Server-Sent Events: docs/http.md.

// How far a page has followed: "INCARNATION:REVISION", the id of an event.
struct FeedCursor {
  std::string incarnation;
  std::int64_t revision = 0;

  std::string text() const;
};
// InvalidArgument: it is none.
absl::StatusOr<FeedCursor> ParseFeedCursor(std::string_view text);

// The training figures that pages are told of while a trial runs: rows of kFigureRows.
inline constexpr std::array<std::string_view, 3> kLiveFigures = {"goodput", "batch_size",
                                                                 "throughput"};

// What a trial that holds slots does at the moment; 0: it does not say.
struct LiveRow {
  RevisionLog::ChangedTrial trial;
  int slots = 0;
  double promise = 0;
  std::array<double, kLiveFigures.size()> figures{};  // in their order
};

std::string HelloEvent(const FeedCursor& at, Time now);
// All has to be read again.
std::string ResyncEvent(const FeedCursor& at, Time now);
// A sign that the stream lives.
std::string AliveEvent(Time now);
// What has changed up to `at`, and the values that were reported in that time. Empty where there is
// no news.
std::string NewsEvents(const FeedCursor& at, Time now, const RevisionLog::News& news,
                       const RevisionLog::Values& values);
// Of one study, or of all. Empty where none of its trials runs.
std::string LiveEvent(Time now, const std::vector<LiveRow>& trials, std::optional<StudyId> study);

}  // namespace espalier
