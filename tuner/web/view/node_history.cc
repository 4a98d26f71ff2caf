#include "tuner/web/view/node_history.h"

#include <utility>

namespace espalier::view {

void NodeHistory::Begin(NodeId node, Time at, int slots) {
  End(node, at);
  spans_[node].push_back({at, Time{}, slots});
}

void NodeHistory::End(NodeId node, Time at) {
  std::vector<Span>& spans = spans_[node];
  if (!spans.empty() && spans.back().to == Time{}) spans.back().to = at;
}

void NodeHistory::Copy(const View& view, const TimeColumns& window) {
  now_ = view.now;
  for (const NodeSeen& event : view.core.state().node_events) {
    const Time at = event.terms.since;
    if (at > window.to()) break;
    const bool told = !event.up && at >= window.from();
    events_.push_back({.node = event.id,
                       .up = event.up,
                       .at = at,
                       .slots = event.terms.slots,
                       .why = told ? event.why : ""});
  }
  for (const NodeView& node : view.core.Nodes()) {
    if (node.connected) here_[node.id] = node.slots;
  }
}

void NodeHistory::Make(const TimeColumns& window) {
  for (Event& event : events_) {
    const auto before = spans_.find(event.node);
    const bool was_there = before != spans_.end();
    const bool was_up = was_there && before->second.back().to == Time{};
    if (event.up) {
      Begin(event.node, event.at, event.slots);
    } else {
      // Of one whose coming is not kept any more.
      if (!was_there) Begin(event.node, window.from(), event.slots);
      End(event.node, event.at);
    }
    const bool told = event.up ? was_there && !was_up : true;
    if (!told || event.at < window.from()) continue;
    marks_.push_back({event.at, event.node, !event.up, std::move(event.why)});
  }
  events_.clear();
  if (marks_.size() > kMaxMarks) marks_.erase(marks_.begin(), marks_.end() - kMaxMarks);
  // Of a node that is here, and of which nothing is kept.
  for (const auto& [node, slots] : here_) {
    if (!spans_.contains(node)) Begin(node, window.from(), slots);
  }
}

std::vector<double> NodeHistory::Slots(const TimeColumns& columns) const {
  SlotUse there(columns);
  for (const auto& [node, spans] : spans_) {
    for (const Span& span : spans) {
      const Time to = span.to == Time{} ? now_ : span.to;
      for (int slot = 0; slot < span.slots; ++slot) there.Add(span.from, to);
    }
  }
  return there.Mean();
}

}  // namespace espalier::view
