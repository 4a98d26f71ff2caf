#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <tuple>

#include "tuner.pb.h"
#include "tuner/api/operation.h"
#include "tuner/api/tuner.h"

namespace espalier::api {

// The operations of the public protocol: a function for each, and a row of kOperations.

inline constexpr std::size_t kMaxStudyJson = 1 << 20;  // bytes
inline constexpr std::size_t kMaxStudyLabel = 4096;    // bytes
inline constexpr int kRecentDecisions = 200;  // sent where only active trials are asked for

absl::StatusOr<v1::Study> CreateStudy(Tuner& tuner, const v1::CreateStudyRequest& request);
// As CreateStudy, and also says whether the study was there before.
struct CreatedStudy {
  v1::Study study;
  bool existed = false;
};
absl::StatusOr<CreatedStudy> CreateOrFindStudy(Tuner& tuner, const v1::CreateStudyRequest& request);
// The same of a study whose text has been parsed, which `label` names in errors.
absl::StatusOr<CreatedStudy> CreateParsedStudy(Tuner& tuner, espalier::CreateStudy study,
                                               const std::string& label);
absl::StatusOr<v1::ListStudiesResponse> ListStudies(Tuner& tuner,
                                                    const v1::ListStudiesRequest& request);
// With active_only, the decisions are limited to the newest kRecentDecisions, too.
absl::StatusOr<v1::StudyDetails> GetStudy(Tuner& tuner, const v1::GetStudyRequest& request);
absl::StatusOr<v1::Study> StopStudy(Tuner& tuner, const v1::StudyName& request);
absl::StatusOr<v1::Study> ResumeStudy(Tuner& tuner, const v1::ResumeStudyRequest& request);
// Returns the study as it was.
absl::StatusOr<v1::Study> DeleteStudy(Tuner& tuner, const v1::StudyName& request);

// Trials that clients run by themselves. A repeated request (with the same request_key) gets the
// trial that the first one got.
absl::StatusOr<v1::TrialRecord> Ask(Tuner& tuner, const v1::AskRequest& request);
TakeBack StartAsk(Tuner& tuner, const v1::AskRequest& request,
                  std::function<void(absl::StatusOr<v1::TrialRecord>)> done);
absl::StatusOr<v1::TrialRecord> Enqueue(Tuner& tuner, const v1::EnqueueRequest& request);
absl::StatusOr<v1::TrialRecord> CloneTrial(Tuner& tuner, const v1::CloneTrialRequest& request);
absl::StatusOr<v1::TrialRecord> GetBestTrial(Tuner& tuner, const v1::StudyName& request);
absl::StatusOr<v1::TrialRecord> GetTrial(Tuner& tuner, const v1::TrialId& request);
absl::StatusOr<v1::Verdict> Report(Tuner& tuner, const v1::ReportRequest& request);
absl::StatusOr<v1::Verdict> ShouldPrune(Tuner& tuner, const v1::TrialId& request);
absl::StatusOr<v1::TellResponse> Tell(Tuner& tuner, const v1::TellRequest& request);
absl::StatusOr<v1::TrialRecord> SetAttributes(Tuner& tuner,
                                              const v1::SetAttributesRequest& request);

// Notes (notes.h), also of what has ended.
absl::StatusOr<v1::NoteText> SetStudyNote(Tuner& tuner, const v1::SetStudyNoteRequest& request);
absl::StatusOr<v1::NoteText> SetTrialNote(Tuner& tuner, const v1::SetTrialNoteRequest& request);

// Trials of the pool, and the pool.
absl::StatusOr<v1::TrialRecord> CancelTrial(Tuner& tuner, const v1::CancelTrialRequest& request);
absl::StatusOr<v1::Trial> PinTrial(Tuner& tuner, const v1::PinTrialRequest& request);
// The newest part of what the processes of a trial have printed on each node on which it ran. Waits
// for agents, so it must not be called on the owner's thread. NOT_FOUND: no agent can be asked for
// it; the error says where it lies. FAILED_PRECONDITION: a client runs the trial.
absl::StatusOr<v1::TrialOutput> GetTrialOutput(Tuner& tuner, const v1::TrialOutputRequest& request);
absl::StatusOr<v1::Pool> GetPool(Tuner& tuner, const v1::GetPoolRequest& request);
absl::StatusOr<v1::Pool> SetPoolPolicy(Tuner& tuner, const v1::SetPoolPolicyRequest& request);
absl::StatusOr<v1::Node> DrainNode(Tuner& tuner, const v1::DrainNodeRequest& request);

// Access tokens (tuner/credentials).
absl::StatusOr<v1::Token> CreateToken(Tuner& tuner, const v1::CreateTokenRequest& request);
// All good tokens, and those that ended in the last month, by name.
absl::StatusOr<v1::ListTokensResponse> ListTokens(Tuner& tuner,
                                                  const v1::ListTokensRequest& request);
absl::StatusOr<v1::Token> RemoveToken(Tuner& tuner, const v1::RemoveTokenRequest& request);

// The table. tests/server/http/openapi_test.cc writes what docs/openapi.json and docs/http.md say
// by it.
inline constexpr std::tuple kOperations{
    RowOf<ListStudies>({.name = "ListStudies",
                        .http = "GET /api/studies",
                        .role = Role::kView,
                        .summary = "All studies"}),
    RowOf<CreateStudy>({.name = "CreateStudy",
                        .http = "POST /api/studies",
                        .role = Role::kSubmit,
                        .summary = "Creates a study"}),
    RowOf<GetStudy>({.name = "GetStudy",
                     .http = "GET /api/studies/{study}",
                     .role = Role::kView,
                     .summary = "A study, its trials and what was decided"}),
    RowOf<StopStudy>({.name = "StopStudy",
                      .http = "POST /api/studies/{study}/stop",
                      .role = Role::kSubmit,
                      .summary = "No new trials until it is resumed"}),
    RowOf<ResumeStudy>(
        {.name = "ResumeStudy",
         .http = "POST /api/studies/{study}/resume",
         .role = Role::kSubmit,
         .summary = "Takes a stopped or ended study up again, also with more trials or time"}),
    RowOf<DeleteStudy>({.name = "DeleteStudy",
                        .http = "DELETE /api/studies/{study}",
                        .role = Role::kSubmit,
                        .summary = "Deletes a study and its trials; replies with what it was"}),
    RowOf<Ask, StartAsk>({.name = "Ask",
                          .http = "POST /api/studies/{study}/ask",
                          .role = Role::kSubmit,
                          .waits = true,
                          .summary = "A trial to run now: the first that waits, or a new one whose "
                                     "parameters the study's sampler draws"}),
    RowOf<Enqueue>(
        {.name = "Enqueue",
         .http = "POST /api/studies/{study}/enqueue",
         .role = Role::kSubmit,
         .summary =
             "A trial for whoever asks next; of a study whose sampler is queue: for the pool"}),
    RowOf<CloneTrial>({.name = "CloneTrial",
                       .http = "POST /api/trials/{trial_id}/clone",
                       .role = Role::kSubmit,
                       .summary = "A trial that goes on from another one's newest checkpoint, with "
                                  "other parameters"}),
    RowOf<GetBestTrial>({.name = "GetBestTrial",
                         .http = "GET /api/studies/{study}/best",
                         .role = Role::kView,
                         .summary = "The best trial of a study of one direction"}),
    RowOf<GetTrial>({.name = "GetTrial",
                     .http = "GET /api/trials/{trial_id}",
                     .role = Role::kView,
                     .trial = true,
                     .summary = "A trial, by whatever client it was made"}),
    RowOf<Report>({.name = "Report",
                   .http = "POST /api/trials/{trial_id}/report",
                   .role = Role::kSubmit,
                   .trial = true,
                   .summary = "An intermediate value; replies with the pruner's verdict"}),
    RowOf<ShouldPrune>({.name = "ShouldPrune",
                        .http = "GET /api/trials/{trial_id}/should-prune",
                        .role = Role::kView,
                        .trial = true,
                        .summary = "Whether the trial should end now, by the study's pruner"}),
    RowOf<Tell>({.name = "Tell",
                 .http = "POST /api/trials/{trial_id}/tell",
                 .role = Role::kSubmit,
                 .trial = true,
                 .summary = "How a trial ended, or a value on the way"}),
    RowOf<SetAttributes>({.name = "SetAttributes",
                          .http = "POST /api/trials/{trial_id}/attributes",
                          .role = Role::kSubmit,
                          .trial = true,
                          .summary = "Sets attributes of a trial that has not ended; others stay"}),
    RowOf<SetStudyNote>({.name = "SetStudyNote",
                         .http = "POST /api/studies/{study}/note",
                         .role = Role::kSubmit,
                         .summary = "Writes the note of a study, also after its end"}),
    RowOf<SetTrialNote>({.name = "SetTrialNote",
                         .http = "POST /api/trials/{trial_id}/note",
                         .role = Role::kSubmit,
                         .summary = "Writes the note of a trial, also after its end"}),
    RowOf<CancelTrial>({.name = "CancelTrial",
                        .http = "POST /api/trials/{trial_id}/cancel",
                        .role = Role::kSubmit,
                        .summary = "Ends a trial that the pool runs, or is to run"}),
    RowOf<PinTrial>(
        {.name = "PinTrial",
         .http = "POST /api/trials/{trial_id}/pin",
         .role = Role::kSubmit,
         .summary = "Holds a trial at a number of slots, or gives it back to the allocator"}),
    RowOf<GetTrialOutput>(
        {.name = "GetTrialOutput",
         .http = "GET /api/trials/{trial_id}/output",
         .role = Role::kView,
         .waits = true,
         .summary = "What the processes of a trial that the pool has run have printed"}),
    RowOf<GetPool>({.name = "GetPool",
                    .http = "GET /api/pool",
                    .role = Role::kView,
                    .summary = "Nodes and who holds which slot"}),
    RowOf<SetPoolPolicy>({.name = "SetPoolPolicy",
                          .http = "POST /api/pool/policy",
                          .role = Role::kAdminister,
                          .summary = "Divides the pool by another policy from now on"}),
    RowOf<DrainNode>({.name = "DrainNode",
                      .http = "POST /api/nodes/{node}/drain",
                      .role = Role::kAdminister,
                      .summary = "Empties a node, or lets it take trials again"}),
    RowOf<CreateToken>({.name = "CreateToken",
                        .http = "",
                        .role = Role::kAdminister,
                        .summary = "A new token; no other answer has its text"}),
    RowOf<ListTokens>({.name = "ListTokens",
                       .http = "",
                       .role = Role::kAdminister,
                       .summary = "The tokens of the pool"}),
    RowOf<RemoveToken>(
        {.name = "RemoveToken", .http = "", .role = Role::kAdminister, .summary = "Ends a token"})};

// Calls `visit` with each row.
template <typename Visit>
void ForEachOperation(const Visit& visit) {
  std::apply([&visit](const auto&... row) { (visit(row), ...); }, kOperations);
}

// The row of the operation whose function this is: FactsOf<api::GetPool>().
template <auto kFunction>
consteval OperationFacts FactsOf() {
  constexpr std::optional<OperationFacts> kFacts = FactsIn<kFunction>(kOperations);
  static_assert(kFacts.has_value(), "no row of kOperations has this function");
  return *kFacts;
}

// Its name.
template <auto kFunction>
consteval const char* OperationName() {
  return FactsOf<kFunction>().name;
}

// Whether a call that is made twice counts once: it changes nothing, or has a key by which the
// service knows it again.
template <auto kFunction>
bool CountsOnce(const RequestOf<kFunction>& request) {
  if constexpr (requires { request.request_key(); }) {
    return !request.request_key().empty();
  } else {
    return FactsOf<kFunction>().role == Role::kView;
  }
}

}  // namespace espalier::api
