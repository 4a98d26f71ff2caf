#include "tuner/cli/views/report/colors.h"

#include <algorithm>
#include <iterator>

#include "tuner/cli/views/study_text.h"

namespace espalier::report {
namespace {

// By Okabe and Ito, without the yellow that no white page shows, and three more.
constexpr Color kStrong[] = {
    {"#0072b2", "#ffffff"}, {"#d55e00", "#000000"}, {"#009e73", "#000000"},
    {"#cc79a7", "#000000"}, {"#e69f00", "#000000"}, {"#56b4e9", "#000000"},
    {"#8073ac", "#000000"}, {"#882255", "#ffffff"}, {"#8a8a2e", "#000000"}};
static_assert(std::size(kStrong) == kStrongColors);

// The same, two fifths of each in a grey.
constexpr Color kPale[] = {{"#5c8fae", "#000000"}, {"#b28767", "#000000"}, {"#5ca195", "#000000"},
                           {"#ae92a9", "#000000"}, {"#b8a167", "#000000"}, {"#7faac4", "#000000"},
                           {"#9090ab", "#000000"}, {"#936f89", "#000000"}, {"#949979", "#000000"}};

}  // namespace

Color StrongColor(std::size_t index) { return kStrong[index % std::size(kStrong)]; }

TrialColors::TrialColors(const v1::StudyDetails& details) {
  for (const v1::Trial* trial : BestFirst(details)) {
    if (ranks_.size() == kStrongColors) break;
    ranks_.emplace(trial->number(), ranks_.size());
  }
}

Color TrialColors::Of(std::int64_t number) const {
  const auto rank = ranks_.find(number);
  if (rank != ranks_.end()) return StrongColor(rank->second);
  return kPale[static_cast<std::size_t>(std::max<std::int64_t>(number, 0)) % std::size(kPale)];
}

}  // namespace espalier::report
