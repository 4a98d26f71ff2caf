#include "allocator/pool/share_account.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace espalier {

namespace {

constexpr double kRounding = 0.1;  // of a part, that whole trials may differ from it

bool FitsBadly(const StudyUse& use, double part) {
  const double trials = part / use.trial_slots;
  if (trials < 1) return true;
  return use.rigid && use.trial_slots > 1 && std::abs(std::round(trials) / trials - 1) > kRounding;
}

}  // namespace

void ShareAccount::Advance(double now_s, int slots, std::map<StudyId, StudyUse> uses) {
  const double passed_s = std::max(0.0, now_s - now_s_);
  for (const auto& [study, part] : Parts(HeldBy(true))) {
    owed_[study] += passed_s * (part - uses_.at(study).held);
  }
  now_s_ = now_s;
  slots_ = slots;
  uses_ = std::move(uses);
  std::erase_if(owed_, [this](const auto& entry) { return !uses_.contains(entry.first); });
}

double ShareAccount::Owed(StudyId study) const {
  const auto at = owed_.find(study);
  return at == owed_.end() ? 0 : at->second;
}

double ShareAccount::OwedSeconds(StudyId study) const {
  const std::map<StudyId, double> parts = Parts(slots_ - HeldBy(false));
  const auto part = parts.find(study);
  return part == parts.end() || part->second <= 0 ? 0 : Owed(study) / part->second;
}

bool ShareAccount::Uneven() const {
  const std::map<StudyId, double> parts = Parts(slots_ - HeldBy(false));
  return std::any_of(parts.begin(), parts.end(), [this](const auto& entry) {
    return FitsBadly(uses_.at(entry.first), entry.second);
  });
}

std::map<StudyId, double> ShareAccount::Parts(double slots) const {
  double shares = 0;
  for (const auto& [study, use] : uses_) shares += use.wants_more ? use.share : 0;
  std::map<StudyId, double> parts;
  for (const auto& [study, use] : uses_) {
    if (use.wants_more) parts[study] = std::max(0.0, slots) * use.share / shares;
  }
  return parts;
}

double ShareAccount::HeldBy(bool wants_more) const {
  double held = 0;
  for (const auto& [study, use] : uses_) held += use.wants_more == wants_more ? use.held : 0;
  return held;
}

}  // namespace espalier
