#include "tuner/cli/views/record.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

// Spans that follow each other closer than this are one stay with different slots.

double EndOf(const v1::SlotSpan& span, double now) {
  return span.to() > 0 ? span.to() : std::max(now, span.from());
}

}  // namespace

double LastMoment(const v1::StudyDetails& details) {
  double last = std::max(details.study().ended_at(), details.study().created_at());
  for (const v1::Decision& decision : details.decisions()) last = std::max(last, decision.at());
  for (const v1::Trial& trial : details.trials()) {
    last = std::max({last, trial.ended_at(), trial.started_at()});
    for (const v1::IntermediateValue& value : trial.values()) last = std::max(last, value.at());
    for (const v1::SlotSpan& span : trial.spans()) last = std::max({last, span.from(), span.to()});
  }
  return last;
}

double SlotSeconds(const v1::Trial& trial, double now) {
  double sum = 0;
  for (const v1::SlotSpan& span : trial.spans()) {
    sum += (EndOf(span, now) - span.from()) * span.slots_size();
  }
  return sum;
}

std::vector<std::vector<std::string>> PaymentRows(
    const google::protobuf::RepeatedPtrField<v1::Payment>& payments) {
  constexpr double kHour_s = 3600;
  std::vector<std::vector<std::string>> rows = {
      {"nodes", "an hour", "node-hours", "slot-hours", "paid"}};
  for (const v1::Payment& payment : payments) {
    std::string kind = payment.node_template();
    if (!payment.gpu_type().empty()) kind += (kind.empty() ? "" : ", ") + payment.gpu_type();
    kind += std::string(kind.empty() ? "" : ", ") + (payment.spot() ? "spot" : "on demand");
    rows.push_back(std::vector<std::string>{
        kind, FormatValue(payment.price_per_hour()), FormatValue(payment.node_seconds() / kHour_s),
        FormatValue(payment.slot_seconds() / kHour_s), FormatValue(payment.cost())});
  }
  return rows;
}

int MostSlotsHeld(const v1::Trial& trial) {
  int most = 0;
  for (const v1::SlotSpan& span : trial.spans()) most = std::max(most, span.slots_size());
  return most;
}

std::set<std::string> FigureNames(const v1::Trial& trial) {
  std::set<std::string> names;
  for (const v1::IntermediateValue& value : trial.values()) {
    for (const auto& [name, figure] : value.extra()) names.insert(name);
  }
  return names;
}

bool ResizedInto(const v1::Trial& trial, int i) {
  if (i < 1 || i >= trial.spans_size()) return false;
  const v1::SlotSpan& before = trial.spans(i - 1);
  const v1::SlotSpan& after = trial.spans(i);
  if (trial.ended_at() > 0 && after.from() >= trial.ended_at()) return false;
  return before.slots_size() != after.slots_size() && before.slots_size() > 0 &&
         after.slots_size() > 0 && after.from() - before.to() <= kSameMoment_s;
}

ResizeCounts CountResizes(const v1::Trial& trial) {
  ResizeCounts counts;
  for (int i = 1; i < trial.spans_size(); ++i) {
    if (!ResizedInto(trial, i)) continue;
    ++(trial.spans(i).slots_size() > trial.spans(i - 1).slots_size() ? counts.grown
                                                                     : counts.shrunk);
  }
  return counts;
}

std::int64_t StepOfValue(const v1::Study& study, const v1::Trial& trial) {
  if (trial.state() == v1::TRIAL_COMPLETE) {
    const auto last = std::find_if(trial.values().rbegin(), trial.values().rend(),
                                   [&](const auto& each) { return each.value() == trial.value(); });
    return last == trial.values().rend() ? 0 : last->step();
  }
  const v1::IntermediateValue* best = nullptr;
  for (const v1::IntermediateValue& value : trial.values()) {
    if (best == nullptr || BetterFor(study, value.value(), best->value())) best = &value;
  }
  return best == nullptr ? 0 : best->step();
}

std::vector<Lane> LanesOf(const v1::StudyDetails& details) {
  std::map<std::int64_t, std::string> names;
  std::set<std::pair<std::int64_t, int>> slots;
  for (const v1::Node& node : details.pool().nodes()) {
    names[node.id()] = node.name();
    for (int i = 0; i < node.slots(); ++i) slots.emplace(node.id(), i);
  }
  for (const v1::NodeName& node : details.former_nodes()) names[node.id()] = node.name();
  for (const v1::Trial& trial : details.trials()) {
    for (const v1::SlotSpan& span : trial.spans()) {
      for (const v1::Slot& slot : span.slots()) slots.emplace(slot.node_id(), slot.index());
    }
  }
  std::vector<Lane> lanes;
  for (const auto& [node, index] : slots) {
    const auto name = names.find(node);
    const std::string shown =
        name == names.end() || name->second.empty() ? "node " + std::to_string(node) : name->second;
    lanes.push_back({node, index, shown + "/" + std::to_string(index)});
  }
  return lanes;
}

Utilisation UtilisationOf(const v1::StudyDetails& details, double now) {
  Utilisation use;
  for (const v1::Trial& trial : details.trials()) {
    if (trial.spans().empty()) continue;
    use.last_start = std::max(use.last_start, trial.spans(0).from());
    for (const v1::SlotSpan& span : trial.spans()) {
      if (use.from == 0 || span.from() < use.from) use.from = span.from();
      use.to = std::max(use.to, EndOf(span, now));
    }
  }
  double held = 0;
  double held_until_last_start = 0;
  for (const v1::Trial& trial : details.trials()) {
    for (const v1::SlotSpan& span : trial.spans()) {
      held += (EndOf(span, now) - span.from()) * span.slots_size();
      const double to = std::min(EndOf(span, now), use.last_start);
      held_until_last_start += std::max(0.0, to - span.from()) * span.slots_size();
    }
  }
  const auto lanes = static_cast<double>(LanesOf(details).size());
  if (lanes > 0 && use.to > use.from) use.overall = held / (lanes * (use.to - use.from));
  if (lanes > 0 && use.last_start > use.from) {
    use.until_last_start = held_until_last_start / (lanes * (use.last_start - use.from));
  }
  return use;
}

}  // namespace espalier
