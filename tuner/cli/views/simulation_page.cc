#include "tuner/cli/views/simulation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

namespace espalier {
namespace {

constexpr double kEpoch_s = 1;  // a moment of zero would mean "not yet"

struct Begin {
  double at = 0;
  std::size_t row = 0;
  const TimelineSpan* span = nullptr;
};

// Deals out slots in order of time: rows that go on keep their own first, new ones are the lowest
// free.
class Dealer {
 public:
  explicit Dealer(int slots) {
    for (int i = 0; i < slots; ++i) free_.insert(i);
  }

  std::vector<int> Deal(const Begin& begin) {
    std::vector<int> kept;
    for (auto it = held_.begin(); it != held_.end();) {
      const bool mine = it->first == begin.row;
      if (!mine && it->second.until > begin.at) {
        ++it;
        continue;
      }
      if (mine) kept = it->second.slots;
      free_.insert(it->second.slots.begin(), it->second.slots.end());
      it = held_.erase(it);
    }
    std::vector<int> dealt;
    const auto take = [&](int slot) {
      if (std::ssize(dealt) < begin.span->slots && free_.erase(slot) > 0) dealt.push_back(slot);
    };
    for (const int slot : kept) take(slot);
    while (std::ssize(dealt) < begin.span->slots && !free_.empty()) take(*free_.begin());
    std::sort(dealt.begin(), dealt.end());
    held_[begin.row] = {begin.span->to_s, dealt};
    return dealt;
  }

 private:
  struct Holding {
    double until = 0;
    std::vector<int> slots;
  };
  std::set<int> free_;
  std::map<std::size_t, Holding> held_;
};

void AddSpans(const Timeline& timeline, v1::StudyDetails& details) {
  std::vector<Begin> begins;
  for (std::size_t row = 0; row < timeline.rows.size(); ++row) {
    for (const TimelineSpan& span : timeline.rows[row].spans) {
      if (span.slots > 0) begins.push_back({span.from_s, row, &span});
    }
  }
  // Rows that shrink go first, so that there is room for those that grow at the same moment.
  std::stable_sort(begins.begin(), begins.end(), [](const Begin& a, const Begin& b) {
    return a.at != b.at ? a.at < b.at : a.span->slots < b.span->slots;
  });
  Dealer dealer(timeline.slots);
  for (const Begin& begin : begins) {
    v1::SlotSpan* span = details.mutable_trials(static_cast<int>(begin.row))->add_spans();
    span->set_from(kEpoch_s + begin.span->from_s);
    span->set_to(kEpoch_s + begin.span->to_s);
    for (const int slot : dealer.Deal(begin)) {
      span->add_slots()->set_node_id(1);
      span->mutable_slots(span->slots_size() - 1)->set_index(slot);
    }
  }
}

}  // namespace

v1::StudyDetails DetailsOf(const std::string& name, const Timeline& timeline) {
  v1::StudyDetails details;
  std::map<std::string, std::int64_t> numbers;
  double end = 0;
  for (std::size_t i = 0; i < timeline.rows.size(); ++i) {
    const TimelineRow& row = timeline.rows[i];
    numbers[row.name] = static_cast<std::int64_t>(i);
    v1::Trial* trial = details.add_trials();
    trial->set_id(static_cast<std::int64_t>(i) + 1);
    trial->set_number(static_cast<std::int64_t>(i));
    trial->set_state(row.outcome == "pruned" ? v1::TRIAL_PRUNED : v1::TRIAL_COMPLETE);
    trial->set_created_at(kEpoch_s + row.submitted_s);
    if (!row.spans.empty()) trial->set_started_at(kEpoch_s + row.spans.front().from_s);
    if (row.ended_s >= 0) trial->set_ended_at(kEpoch_s + row.ended_s);
    end = std::max(end, row.ended_s);
    v1::Parameter* parameter = trial->add_parameters();
    parameter->set_name("job");
    parameter->set_json(fmt::format("\"{}\"", row.name));
  }
  AddSpans(timeline, details);
  for (const TimelineDecision& d : timeline.decisions) {
    v1::Decision* decision = details.add_decisions();
    decision->set_at(kEpoch_s + d.at_s);
    const auto number = numbers.find(d.row);
    decision->set_trial_number(number == numbers.end() ? -1 : number->second);
    decision->set_kind(d.from_slots == 0           ? "start"
                       : d.to_slots == 0           ? "pause"
                       : d.to_slots > d.from_slots ? "grow"
                       : d.to_slots < d.from_slots ? "shrink"
                                                   : "move");
    decision->set_from_slots(d.from_slots);
    decision->set_to_slots(d.to_slots);
    decision->set_reason(d.reason);
  }
  v1::Study& study = *details.mutable_study();
  study.set_id(1);
  study.set_name(name);
  study.set_metric("value");
  study.set_state(v1::STUDY_COMPLETE);
  study.set_created_at(kEpoch_s);
  study.set_ended_at(kEpoch_s + end);
  study.set_elapsed_s(end);
  (*study.mutable_trials_by_state())["COMPLETE"] = std::ssize(timeline.rows);
  v1::Node* node = details.mutable_pool()->add_nodes();
  node->set_id(1);
  node->set_name("slot");
  node->set_slots(timeline.slots);
  node->set_connected(true);
  details.mutable_pool()->set_slots(timeline.slots);
  return details;
}

std::string SimulationPagePath(const std::string& path, const std::string& policy,
                               std::size_t policies) {
  if (policies == 1) return path;
  const std::filesystem::path page(path);
  std::filesystem::path own = page.stem();
  own += "-" + policy + page.extension().string();
  return (page.parent_path() / own).string();
}

}  // namespace espalier
