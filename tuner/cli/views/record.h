#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tuner.pb.h"

namespace espalier {

// Figures that follow from the record of a study. Pure.

// The newest moment that the record knows of: what stands for "now" when nothing runs any more.
double LastMoment(const v1::StudyDetails& details);

// Seconds times slots held; a span that is still open counts to `now`.
double SlotSeconds(const v1::Trial& trial, double now);
int MostSlotsHeld(const v1::Trial& trial);

// What was paid for the slots of which nodes, as rows below a heading; only the heading where no
// node's price is known.
std::vector<std::vector<std::string>> PaymentRows(
    const google::protobuf::RepeatedPtrField<v1::Payment>& payments);

// Spans that lie no further apart than this follow each other without a break.
inline constexpr double kSameMoment_s = 0.05;

// Whether the trial went from span i-1 to span i by a resize: at once, and not because it was over
// and its processes left one by one.
bool ResizedInto(const v1::Trial& trial, int i);

// How often a trial's slots grew or shrank without the trial having let go of all of them.
struct ResizeCounts {
  int grown = 0;
  int shrunk = 0;
};
ResizeCounts CountResizes(const v1::Trial& trial);

// The names of the figures that the trial's program reported beside its metric.
std::set<std::string> FigureNames(const v1::Trial& trial);

// The step at which the trial reported the value that counts as its own; 0: at none, as when it
// ended with another one.
std::int64_t StepOfValue(const v1::Study& study, const v1::Trial& trial);

// One slot of the pool, in the order in which they are drawn.
struct Lane {
  std::int64_t node_id = 0;
  int index = 0;
  std::string name;  // node/slot

  auto operator<=>(const Lane& other) const {
    return std::pair(node_id, index) <=> std::pair(other.node_id, other.index);
  }
  bool operator==(const Lane& other) const {
    return node_id == other.node_id && index == other.index;
  }
};
// The slots of the pool and those that the record names.
std::vector<Lane> LanesOf(const v1::StudyDetails& details);

// Share of the slots' time that trials held them, from the first slot taken to the last given
// back; and up to the start of the last trial, when there was still something to start.
struct Utilisation {
  double from = 0;
  double to = 0;
  double last_start = 0;
  double overall = 0;  // 0 to 1
  double until_last_start = 0;
};
Utilisation UtilisationOf(const v1::StudyDetails& details, double now);

}  // namespace espalier
