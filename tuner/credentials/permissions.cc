#include "tuner/credentials/permissions.h"

#include <map>

namespace espalier {
namespace {

constexpr Permission kPermissions[] = {
    {"/espalier.v1.Tuner/CreateStudy", Role::kSubmit},
    {"/espalier.v1.Tuner/ListStudies", Role::kView},
    {"/espalier.v1.Tuner/GetStudy", Role::kView},
    {"/espalier.v1.Tuner/StopStudy", Role::kSubmit},
    {"/espalier.v1.Tuner/ResumeStudy", Role::kSubmit},
    {"/espalier.v1.Tuner/DeleteStudy", Role::kSubmit},
    {"/espalier.v1.Tuner/Tell", Role::kSubmit, true},
    {"/espalier.v1.Tuner/Ask", Role::kSubmit},
    {"/espalier.v1.Tuner/Enqueue", Role::kSubmit},
    {"/espalier.v1.Tuner/Report", Role::kSubmit, true},
    {"/espalier.v1.Tuner/ShouldPrune", Role::kView, true},
    {"/espalier.v1.Tuner/SetAttributes", Role::kSubmit, true},
    {"/espalier.v1.Tuner/GetTrial", Role::kView, true},
    {"/espalier.v1.Tuner/GetBestTrial", Role::kView},
    {"/espalier.v1.Tuner/CancelTrial", Role::kSubmit},
    {"/espalier.v1.Tuner/GetTrialOutput", Role::kView},
    {"/espalier.v1.Tuner/PinTrial", Role::kSubmit},
    {"/espalier.v1.Tuner/DrainNode", Role::kAdminister},
    {"/espalier.v1.Tuner/GetPool", Role::kView},
    {"/espalier.v1.Tuner/SetPoolPolicy", Role::kAdminister},
    {"/espalier.v1.Tuner/CreateToken", Role::kAdminister},
    {"/espalier.v1.Tuner/ListTokens", Role::kAdminister},
    {"/espalier.v1.Tuner/RemoveToken", Role::kAdminister},
    {"/espalier.v1.Tuner/Agent", Role::kAgent},
    {"/espalier.v1.Slots/Acquire", Role::kSubmit},
    {"/espalier.v1.Slots/Renew", Role::kSubmit},
    {"/espalier.v1.Slots/Release", Role::kSubmit},
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
    {"GET /healthz", Role::kNobody},
    {"GET /metrics", Role::kView},
    {"GET /api/openapi.json", Role::kView},
    {"GET /api/pool", Role::kView},
    {"POST /api/pool/policy", Role::kAdminister},
    {"POST /api/nodes/{node}/drain", Role::kAdminister},
    {"GET /api/studies", Role::kView},
    {"POST /api/studies", Role::kSubmit},
    {"GET /api/studies/{study}", Role::kView},
    {"DELETE /api/studies/{study}", Role::kSubmit},
    {"GET /api/studies/{study}/trials", Role::kView},
    {"POST /api/studies/{study}/stop", Role::kSubmit},
    {"POST /api/studies/{study}/resume", Role::kSubmit},
    {"POST /api/studies/{study}/ask", Role::kSubmit},
    {"POST /api/studies/{study}/enqueue", Role::kSubmit},
    {"GET /api/studies/{study}/best", Role::kView},
    {"GET /api/trials/{trial_id}", Role::kView, true},
    {"POST /api/trials/{trial_id}/report", Role::kSubmit, true},
    {"GET /api/trials/{trial_id}/should-prune", Role::kView, true},
    {"POST /api/trials/{trial_id}/tell", Role::kSubmit, true},
    {"POST /api/trials/{trial_id}/cancel", Role::kSubmit},
    {"POST /api/trials/{trial_id}/pin", Role::kSubmit},
    {"GET /api/trials/{trial_id}/output", Role::kView},
    {"POST /api/trials/{trial_id}/attributes", Role::kSubmit, true},
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

}  // namespace

std::span<const Permission> Permissions() { return kPermissions; }

const Permission* FindPermission(std::string_view call) {
  static const auto* const by_call = [] {
    auto* table = new std::map<std::string_view, const Permission*>;
    for (const Permission& row : kPermissions) table->emplace(row.call, &row);
    return table;
  }();
  const auto found = by_call->find(call);
  return found == by_call->end() ? nullptr : found->second;
}

}  // namespace espalier
