#include "tuner/core/state/refusals.h"

#include "absl/strings/str_cat.h"

namespace espalier {

absl::Status NoStudy(StudyId id) {
  return absl::NotFoundError(absl::StrCat("no study with id ", id.value));
}

absl::Status NoStudy(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("no study \"", name, "\""));
}

absl::Status NoTrial(TrialId id) {
  return absl::NotFoundError(absl::StrCat("no trial with id ", id.value));
}

absl::Status PrivateAttribute(const std::string& key) {
  return absl::InvalidArgumentError(
      absl::StrCat("attribute \"", key, "\": is the service's own, which no client sees or sets"));
}

absl::Status CheckCostLimit(const StudySpec& spec) {
  if (spec.cost_limit == 0 || spec.slot_price_per_hour != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "\"cost_limit\": needs \"slot_price_per_hour\" too, what a slot costs in the same money");
}

absl::Status HasEnded(const Trial& trial) {
  return absl::FailedPreconditionError(
      absl::StrCat("trial ", trial.number, " (id ", trial.id.value, ") has ended (",
                   std::string(ToString(trial.state)), ") and cannot be changed any more"));
}

absl::Status NotRunning(const Study& study) {
  const std::string why = study.reason.empty() ? "" : absl::StrCat(" (", study.reason, ")");
  return absl::FailedPreconditionError(absl::StrCat("study \"", study.spec.name, "\" is ",
                                                    std::string(ToString(study.state)), why,
                                                    ": resume it for new trials"));
}

absl::Status RunsOnThePool(const Study& study) {
  return absl::PermissionDeniedError(
      absl::StrCat("study \"", study.spec.name,
                   "\" runs on the tuner's pool: its trials are created, run and ended by the "
                   "tuner; clients may read them and set attributes"));
}

std::string NoFiniteEnd(double value) {
  return absl::StrCat("told ", value, " as its final value, which must be a finite number");
}

absl::Status CheckStep(std::int64_t step) {
  if (step >= 0 && step <= kMaxStep) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("step must be from 0 to ", kMaxStep, ", got ", step));
}

absl::Status HasReportedTheMost(const Trial& trial) {
  return absl::FailedPreconditionError(absl::StrCat("trial ", trial.number, " has reported ",
                                                    kMaxReportsPerTrial,
                                                    " values, which is the most that is kept"));
}

}  // namespace espalier
