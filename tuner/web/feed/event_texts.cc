#include "tuner/web/feed/event_texts.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace espalier {

namespace {

// JSON has no other numbers than finite ones.
std::string Number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end);
}
std::string Number(std::int64_t value) { return absl::StrCat(value); }
std::string Number(int value) { return absl::StrCat(value); }
std::string Moment(Time at) { return absl::StrFormat("%.3f", Seconds(at)); }
// Of a figure that changes all the time; unknown where it is 0.
std::string Rounded(double value) {
  if (!std::isfinite(value) || value == 0) return "null";
  return absl::StrFormat("%.4g", value);
}

// A column of JSON: `text` of each row.
template <typename Rows, typename Text>
std::string Column(std::string_view name, const Rows& rows, Text text) {
  return absl::StrCat(
      "\"", std::string(name), "\":[",
      absl::StrJoin(rows, ",",
                    [&text](std::string* out, const auto& row) { out->append(text(row)); }),
      "]");
}

std::string Event(const char* name, const FeedCursor* at, const std::string& json) {
  return absl::StrCat("event: ", name, "\n",
                      at == nullptr ? "" : absl::StrCat("id: ", at->text(), "\n"), "data: {", json,
                      "}\n\n");
}

std::string Word(bool value) { return value ? "true" : "false"; }

std::string ChangedEvent(const FeedCursor& at, Time now, const RevisionLog::News& news) {
  const auto trial = [](const RevisionLog::ChangedTrial& changed) {
    return absl::StrCat("{\"id\":", changed.id.value, ",\"study_id\":", changed.study.value,
                        ",\"number\":", changed.number, "}");
  };
  return Event(
      "changed", &at,
      absl::StrCat(
          "\"revision\":", news.revision, ",\"now\":", Moment(now), ",",
          Column("studies", news.studies, [](StudyId id) { return absl::StrCat(id.value); }), ",",
          Column("trials", news.trials, trial), ",\"more\":", Word(news.more),
          ",\"pool\":", Word(news.pool), ",\"decisions\":", Word(news.decisions)));
}

std::string ValuesEvent(Time now, const RevisionLog::Values& values) {
  using Reported = RevisionLog::ReportedValue;
  const auto column = [&values](const char* name, auto of) {
    return Column(name, values.values, of);
  };
  const std::vector<std::string> columns = {
      column("trial_id", [](const Reported& r) { return Number(r.trial.id.value); }),
      column("study_id", [](const Reported& r) { return Number(r.trial.study.value); }),
      column("number", [](const Reported& r) { return Number(r.trial.number); }),
      column("step", [](const Reported& r) { return Number(r.value.step); }),
      column("value", [](const Reported& r) { return Number(r.value.value); }),
      column("at", [](const Reported& r) { return Moment(r.value.at); }),
      column("batch_size",
             [](const Reported& r) {
               return r.value.batch_size == 0 ? "null" : Number(r.value.batch_size);
             }),
      column("promise", [](const Reported& r) { return Rounded(double{r.value.promise}); }),
      column("goodput", [](const Reported& r) { return Rounded(double{r.value.goodput}); })};
  // Without an id: whoever has seen the event that follows has seen this one.
  return Event("values", nullptr,
               absl::StrCat("\"now\":", Moment(now), ",\"more\":", Word(values.more), ",",
                            absl::StrJoin(columns, ",")));
}

}  // namespace

std::string FeedCursor::text() const { return absl::StrCat(incarnation, ":", revision); }

absl::StatusOr<FeedCursor> ParseFeedCursor(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  bool good = colon != std::string_view::npos && !name.empty();
  for (const char c : name) good = good && absl::ascii_isxdigit(static_cast<unsigned char>(c));
  FeedCursor cursor{.incarnation = std::string(name), .revision = 0};
  if (good) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, cursor.revision);
    good = error == std::errc() && stop == end && cursor.revision >= 0;
  }
  if (good) return cursor;
  return absl::InvalidArgumentError(absl::StrCat(
      "after \"", std::string(text.substr(0, 100)),
      "\": needs INCARNATION:REVISION, as the id of an event or a view of the service has them"));
}

std::string HelloEvent(const FeedCursor& at, Time now) {
  return absl::StrCat(
      "retry: 2000\n",
      Event("hello", &at,
            absl::StrCat("\"version\":1,\"incarnation\":\"", at.incarnation,
                         "\",\"revision\":", at.revision, ",\"now\":", Moment(now))));
}

std::string ResyncEvent(const FeedCursor& at, Time now) {
  return Event("resync", &at,
               absl::StrCat("\"incarnation\":\"", at.incarnation, "\",\"revision\":", at.revision,
                            ",\"now\":", Moment(now)));
}

std::string AliveEvent(Time now) {
  return Event("alive", nullptr, absl::StrCat("\"now\":", Moment(now)));
}

std::string NewsEvents(const FeedCursor& at, Time now, const RevisionLog::News& news,
                       const RevisionLog::Values& values) {
  std::string events;
  if (!values.values.empty() || values.more) events = ValuesEvent(now, values);
  if (news.any()) events += ChangedEvent(at, now, news);
  return events;
}

std::string LiveEvent(Time now, const std::vector<LiveRow>& trials, std::optional<StudyId> study) {
  std::vector<LiveRow> shown;
  for (const LiveRow& row : trials) {
    if (!study || row.trial.study == *study) shown.push_back(row);
  }
  if (shown.empty()) return "";
  std::vector<std::string> columns = {
      Column("trial_id", shown, [](const LiveRow& row) { return Number(row.trial.id.value); }),
      Column("slots", shown, [](const LiveRow& row) { return Number(row.slots); }),
      Column("promise", shown, [](const LiveRow& row) { return Rounded(row.promise); })};
  for (std::size_t i = 0; i < kLiveFigures.size(); ++i) {
    columns.push_back(Column(kLiveFigures[i], shown,
                             [i](const LiveRow& row) { return Rounded(row.figures[i]); }));
  }
  return Event("live", nullptr,
               absl::StrCat("\"now\":", Moment(now), ",", absl::StrJoin(columns, ",")));
}

}  // namespace espalier
