#include "tuner/core/state/payments.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tuner/core/state/engine_node_names.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/core/state/trial_tally.h"

namespace espalier {

namespace {

class Payments {
 public:
  Payments(const TunerState& state, Time now) : state_(state), now_(now) {}

  void Add(const SlotSpan& span) {
    const Time to = span.to == Time{} ? now_ : span.to;
    for (const Slot& slot : span.slots) AddSlot(slot.node, span.from, to);
  }

  void Add(NodeId node, const TrialTally::Held& held) {
    const auto told = state_.node_terms.find(node);
    if (told == state_.node_terms.end()) return;
    for (std::size_t i = 0; i < held.us.size(); ++i) {
      if (held.us[i] > 0) {
        AddTime(node, told->second[i], SecondsBetween(Time{0}, Time{held.us[i]}));
      }
    }
  }

  std::vector<Payment> Take() const {
    std::vector<Payment> payments;
    for (const auto& [kind, payment] : by_kind_) payments.push_back(payment);
    return payments;
  }

 private:
  using Kind = std::tuple<std::string, std::string, bool, double>;

  void AddSlot(NodeId node, Time from, Time to) {
    const auto told = state_.node_terms.find(node);
    if (told == state_.node_terms.end()) return;
    ForEachTerms(&told->second, from, to, [&](std::size_t index, std::int64_t us) {
      AddTime(node, told->second[index], SecondsBetween(Time{0}, Time{us}));
    });
  }

  void AddTime(NodeId node, const NodeTerms& terms, double held_s) {
    const std::string of = TemplateOf(state_.nodes.at(node)).value_or("");
    const Kind kind(of, terms.gpu_type, terms.spot, terms.price_per_hour);
    Payment& payment = by_kind_[kind];
    payment.node_template = of;
    payment.gpu_type = terms.gpu_type;
    payment.spot = terms.spot;
    payment.price_per_hour = terms.price_per_hour;
    payment.slot_seconds += held_s;
    payment.node_seconds += held_s / std::max(1, terms.slots);
    payment.cost += held_s / std::max(1, terms.slots) / kHour_s * terms.price_per_hour;
  }

  const TunerState& state_;
  const Time now_;
  std::map<Kind, Payment> by_kind_;
};

}  // namespace

std::vector<Payment> PaymentsFor(const TunerState& state, const Trial& trial, Time now) {
  Payments payments(state, now);
  for (const SlotSpan& span : trial.spans) payments.Add(span);
  return payments.Take();
}

std::vector<Payment> PaymentsFor(const TunerState& state, const Study& study, Time now) {
  Payments payments(state, now);
  if (state.node_terms.empty()) return {};
  const TrialTally& tally = state.TallyOf(study);
  for (const auto& [node, held] : tally.held()) payments.Add(node, held);
  for (const TrialId id : tally.holders()) payments.Add(state.trials.at(id).spans.back());
  return payments.Take();
}

}  // namespace espalier
