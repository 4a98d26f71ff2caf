#include "allocator/pool/share_account.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace espalier {

namespace {

constexpr double kRounding = 0.1;  // of a part, that whole trials may differ from it
constexpr double kMostTrials = 3;  // that a study may owe or be owed, of the longest
constexpr double kLeastLimit_s = 600;

bool FitsBadly(const StudyUse& use, double part) {
  const double trials = part / use.trial_slots;
  if (trials < 1) return true;
  return use.rigid && use.trial_slots > 1 && std::abs(std::round(trials) / trials - 1) > kRounding;
}

}  // namespace

void ShareAccount::Advance(double now_s, int slots, std::map<StudyId, StudyUse> uses) {
  Advance(now_s);
  uses_ = std::move(uses);
  std::erase_if(owed_, [this](const auto& entry) { return !uses_.contains(entry.first); });
  parts_ = Parts(slots);
  uneven_ = std::any_of(uses_.begin(), uses_.end(), [this](const auto& entry) {
    return entry.second.wants_more && FitsBadly(entry.second, parts_.at(entry.first));
  });
}

void ShareAccount::Advance(double now_s) {
  const double passed_s = std::max(0.0, now_s - std::exchange(now_s_, now_s));
  if (!uneven_ || passed_s == 0) return;
  double held = 0;
  double longest_s = 0;
  for (const auto& [study, use] : uses_) {
    held += use.held;
    longest_s = std::max(longest_s, use.trial_s);
  }
  const double limit_s = std::max(kLeastLimit_s, kMostTrials * longest_s);
  // Slots that nobody has are nobody's debt.
  for (const auto& [study, part] : Parts(held)) {
    const double limit = limit_s * parts_.at(study);
    double& owed = owed_[study];
    owed = std::clamp(owed + passed_s * (part - uses_.at(study).held), -limit, limit);
  }
}

double ShareAccount::Owed(StudyId study) const {
  const auto at = owed_.find(study);
  return at == owed_.end() ? 0 : at->second;
}

double ShareAccount::OwedSeconds(StudyId study) const {
  const auto part = parts_.find(study);
  return part == parts_.end() || part->second <= 0 ? 0 : Owed(study) / part->second;
}

bool ShareAccount::WantsMore(StudyId study) const {
  const auto use = uses_.find(study);
  return use != uses_.end() && use->second.wants_more;
}

std::map<StudyId, double> ShareAccount::Parts(double slots) const {
  std::map<StudyId, double> parts;
  double left = std::max(0.0, slots);
  for (bool found = true; found;) {
    double shares = 0;
    for (const auto& [study, use] : uses_) shares += parts.contains(study) ? 0 : use.share;
    found = false;
    for (const auto& [study, use] : uses_) {
      if (parts.contains(study) || use.wants_more || use.held > left * use.share / shares) continue;
      parts[study] = use.held;
      left -= use.held;
      found = true;
      break;
    }
    if (found) continue;
    for (const auto& [study, use] : uses_) {
      if (!parts.contains(study)) parts[study] = left * use.share / shares;
    }
  }
  return parts;
}

}  // namespace espalier
