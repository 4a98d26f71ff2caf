#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "tuner/api/tuner.h"
#include "tuner/credentials/roles.h"
#include "tuner/web/feed/revision_log.h"

namespace espalier {
struct StudyCopy;
}

namespace espalier::view {

class JsonText;

// What a page shows of the service, as JSON: docs/http.md ("For pages") and docs/openapi.json say
// what is in each answer. All is copied from the core a slice at a time (slices.h) and written as
// JSON on the caller's thread, so that the owner of the core never has to wait for a page. Times
// are seconds since 1970, and what is not known is null. To be called from any thread but the
// owner's.

// Raised in a version that takes something away or gives it another meaning.
inline constexpr int kVersion = 1;

// Who asks, and where the answer comes from.
struct Source {
  Tuner& tuner;
  Role role = Role::kView;           // what the caller may do
  const RevisionLog* log = nullptr;  // null: nothing has a revision
};

// The pool, all studies by what is counted of them, and what needs a look.
absl::StatusOr<std::string> OverviewJson(const Source& source);

// The same, with a text that stays as it is until something else changes than what time does.
struct OverviewTexts {
  std::string json;
  std::string without_time;
};
absl::StatusOr<OverviewTexts> TextsOfOverview(const Source& source);

// What a study is: its definition, its parameters, its limits.
absl::StatusOr<std::string> StudyJson(const Source& source, StudyId id);

// A study's trials as columns, those with the highest numbers first.
struct TrialsWanted {
  static constexpr std::int64_t kMaxRows = 10'000;

  std::int64_t from = 0;  // so many are left out
  std::int64_t rows = kMaxRows;
  // Those alone that have changed since that revision, whatever else is here; "complete" in the
  // answer is false where these are not known or are too many: then all are to be read again.
  std::optional<std::int64_t> changed_since{};
};
absl::StatusOr<std::string> TrialsJson(const Source& source, StudyId study,
                                       const TrialsWanted& wanted);

// What was decided, newest first: of all studies, or of what is given here. Reaches back as far as
// the service keeps decisions in memory (kDecisionsShown of each study).
struct DecisionsWanted {
  static constexpr std::int64_t kMaxRows = 1000;

  std::optional<StudyId> study{};
  std::optional<TrialId> trial{};
  std::string kind{};    // empty: of all kinds
  std::string before{};  // a cursor; empty: from the newest one on
  std::int64_t rows = 200;
};
absl::StatusOr<std::string> DecisionsJson(const Source& source, const DecisionsWanted& wanted);

// Curves of some of a study's trials, cut to what the pixels can show.
struct CurvesWanted {
  static constexpr std::size_t kMaxTrials = 300;
  static constexpr int kMaxWidth = 4096;
  static constexpr std::int64_t kMaxObjective = 1000;
  enum class Axis { kStep, kTime, kProgress, kSlotSeconds };

  std::vector<TrialId> trials{};
  std::int64_t best = 20;  // so many of the best ones, where no trials are named
  Axis x = Axis::kStep;
  std::optional<double> from{}, to{};  // of the axis; none: as far as there are points
  int width = 1200;
  bool log = false;            // the axis is of the logarithm
  std::int64_t objective = 0;  // which of the study's metrics, from 0
};
absl::StatusOr<std::string> CurvesJson(const Source& source, StudyId study,
                                       const CurvesWanted& wanted);

// Who has held which slot when, and what happened, cut to what the pixels can show.
struct LanesWanted {
  static constexpr int kMaxWidth = 4096;

  std::optional<double> from{}, to{};  // none: from the first span on, and until now
  int width = 1200;
  std::optional<StudyId> study{};  // its spans and marks alone
};
absl::StatusOr<std::string> LanesJson(const Source& source, const LanesWanted& wanted);

// All of one trial, but for its curve.
absl::StatusOr<std::string> TrialJson(const Source& source, TrialId id);
// The same without the decisions about it and its clones: what TrialJson has as "trial".
absl::StatusOr<std::string> TrialAloneJson(const Source& source, TrialId id);

// What is worked out of a study's complete trials (tuner/analysis): a row for each question.
struct Analysis {
  std::string_view name;  // "what" of the answer
  void (*put)(JsonText& json, const StudyCopy& study);
};
std::span<const Analysis> Analyses();
absl::StatusOr<std::string> AnalysisJson(const Source& source, StudyId study,
                                         const Analysis& analysis);
// The answers to all of them, by name.
absl::StatusOr<std::string> AnalysesJson(const Source& source, StudyId study);

// One study as a whole, for a page that has no service to ask (tuner/web/page/record): what the
// answers above say of it, the curves of all trials on every axis, and `more`, JSON by key. Of very
// many values as many stay as pixels can show; of very many decisions, the newest.
struct RecordLimits {
  std::size_t values = 200'000;    // of all curves together
  std::size_t least_values = 100;  // of one
  std::int64_t decisions = 5000;
};
absl::StatusOr<std::string> RecordJson(const Source& source, StudyId study,
                                       const std::map<std::string, std::string>& more,
                                       const RecordLimits& limits = {});

}  // namespace espalier::view
