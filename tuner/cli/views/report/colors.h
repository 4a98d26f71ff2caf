#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tuner.pb.h"

namespace espalier::report {

// What a thing is drawn in, and what is read best upon it: black or white.
struct Color {
  const char* fill;
  const char* ink;
};

// As many things as there are colours that people with any kind of colour vision tell apart.
inline constexpr std::size_t kStrongColors = 9;
// The colours of few things, such as scaling rules; they repeat where there are more.
Color StrongColor(std::size_t index);

// A trial's colour in every picture of a report. Each of the study's best trials has a strong one
// of its own; those of all others are pale, and repeat.
class TrialColors {
 public:
  explicit TrialColors(const v1::StudyDetails& details);
  Color Of(std::int64_t number) const;
  // Whether that colour is the trial's alone.
  bool IsOwn(std::int64_t number) const { return ranks_.contains(number); }

 private:
  std::map<std::int64_t, std::size_t> ranks_;  // of the best, by number
};

}  // namespace espalier::report
