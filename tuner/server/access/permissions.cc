#include "tuner/server/access/permissions.h"

#include <deque>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/api/operations.h"

namespace espalier {
namespace {

// What is no operation of the table in tuner/api/operations.h.
constexpr Permission kOthers[] = {
    {"/espalier.v1.Tuner/Agent", Role::kAgent},
    {"/espalier.v1.Slots/Acquire", Role::kSubmit},
    {"/espalier.v1.Slots/Renew", Role::kSubmit},
    {"/espalier.v1.Slots/Release", Role::kSubmit},
    {"/espalier.v1.Sessions/CreateLoginCode", Role::kView},
    {"/optuna.StorageService/CreateNewStudy", Role::kSubmit},
    {"/optuna.StorageService/DeleteStudy", Role::kSubmit},
    {"/optuna.StorageService/SetStudyUserAttribute", Role::kSubmit},
    {"/optuna.StorageService/SetStudySystemAttribute", Role::kSubmit},
    {"/optuna.StorageService/GetStudyIdFromName", Role::kView},
    {"/optuna.StorageService/GetStudyNameFromId", Role::kView},
    {"/optuna.StorageService/GetStudyDirections", Role::kView},
    {"/optuna.StorageService/GetStudyUserAttributes", Role::kView},
    {"/optuna.StorageService/GetStudySystemAttributes", Role::kView},
    {"/optuna.StorageService/GetAllStudies", Role::kView},
    {"/optuna.StorageService/CreateNewTrial", Role::kSubmit},
    {"/optuna.StorageService/SetTrialParameter", Role::kSubmit},
    {"/optuna.StorageService/GetTrialIdFromStudyIdTrialNumber", Role::kView},
    {"/optuna.StorageService/SetTrialStateValues", Role::kSubmit},
    {"/optuna.StorageService/SetTrialIntermediateValue", Role::kSubmit},
    {"/optuna.StorageService/SetTrialUserAttribute", Role::kSubmit},
    {"/optuna.StorageService/SetTrialSystemAttribute", Role::kSubmit},
    {"/optuna.StorageService/GetTrial", Role::kView},
    {"/optuna.StorageService/GetTrials", Role::kView},
    {"GET /", Role::kNobody},
    {"GET /links", Role::kNobody},
    {"GET /ui", Role::kNobody},
    {"GET /ui/{page}", Role::kNobody},
    {"GET /ui-assets/{file}", Role::kNobody},
    {"GET /login", Role::kNobody},
    {"GET /login.js", Role::kNobody},
    {"GET /healthz", Role::kNobody},
    {"GET /metrics", Role::kView},
    {"GET /api/openapi.json", Role::kView},
    {"GET /api/studies/{study}/trials", Role::kView},
    {"GET /api/view/overview", Role::kView},
    {"GET /api/view/studies/{study_id}", Role::kView},
    {"GET /api/view/studies/{study_id}/trials", Role::kView},
    {"GET /api/view/studies/{study_id}/curves", Role::kView},
    {"GET /api/view/lanes", Role::kView},
    {"GET /api/view/decisions", Role::kView},
    {"GET /api/view/trials/{trial_id}", Role::kView},
    {"GET /api/view/events", Role::kView},
    {"GET /api/session", Role::kView},
    {"POST /api/session", Role::kView},
    {"DELETE /api/session", Role::kView},
    {"GET /api/view/studies/{study_id}/analysis", Role::kView},
    {"POST /api/studies/{study}/simulations", Role::kSubmit},
    {"GET /api/simulations/{simulation_id}", Role::kView},
    {"POST /api/trials/{trial_id}/slots", Role::kSubmit},
    {"DELETE /api/trials/{trial_id}/slots", Role::kSubmit},
    {"GET /nni/v1/service", Role::kView},
    {"PUT /nni/v1/experiments/{experiment}", Role::kSubmit},
    {"POST /nni/v1/experiments/{experiment}/stop", Role::kSubmit},
    {"GET /nni/v1/experiments/{experiment}/events", Role::kView},
    {"PUT /nni/v1/experiments/{experiment}/trials/{trial}", Role::kSubmit},
    {"DELETE /nni/v1/experiments/{experiment}/trials/{trial}", Role::kSubmit},
    {"PUT /nni/v1/experiments/{experiment}/trials/{trial}/parameter", Role::kSubmit},
    {"GET /nni/v1/experiments/{experiment}/trials/{trial}/files/{name}", Role::kView},
    // The URL holds a secret of the trial, which its answer checks: NNI's SDK sends no header.
    {"PUT /nni/v1/channel/{experiment}/{trial}/{secret}", Role::kNobody},
    {"GET /nni/v1/channel/{experiment}/{trial}/{secret}", Role::kNobody},
    {"dashboard GET", Role::kView},
    {"dashboard HEAD", Role::kView},
    {"dashboard POST", Role::kSubmit},
    {"dashboard PUT", Role::kSubmit},
    {"dashboard PATCH", Role::kSubmit},
    {"dashboard DELETE", Role::kSubmit},
};

// Those of the operations, over gRPC and HTTP, then the others.
std::vector<Permission> MakePermissions() {
  static auto* const calls = new std::deque<std::string>;  // what the rows' texts lie in
  std::vector<Permission> all;
  api::ForEachOperation([&all](const auto& row) {
    calls->push_back(absl::StrCat("/espalier.v1.Tuner/", row.name));
    all.push_back({calls->back(), row.role, row.trial});
    if (*row.http != '\0') all.push_back({row.http, row.role, row.trial});
  });
  all.insert(all.end(), std::begin(kOthers), std::end(kOthers));
  return all;
}

}  // namespace

std::span<const Permission> Permissions() {
  static const auto* const all = new std::vector<Permission>(MakePermissions());
  return *all;
}

const Permission* FindPermission(std::string_view call) {
  static const auto* const by_call = [] {
    auto* table = new std::map<std::string_view, const Permission*>;
    for (const Permission& row : Permissions()) table->emplace(row.call, &row);
    return table;
  }();
  const auto found = by_call->find(call);
  return found == by_call->end() ? nullptr : found->second;
}

}  // namespace espalier
