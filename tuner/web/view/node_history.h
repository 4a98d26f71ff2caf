#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner/api/tuner.h"
#include "tuner/web/view/lane_columns.h"

namespace espalier::view {

// When nodes were there, with how many slots, as far as the service has kept it.
class NodeHistory {
 public:
  static constexpr std::size_t kMaxMarks = 2000;  // the newest ones

  // A node was lost, or has come back.
  struct Mark {
    Time at;
    NodeId node;
    bool lost = false;
    std::string why;
  };

  // Copies what is kept: to be called on the owner's thread. What happened after the window is left
  // out.
  void Copy(const View& view, const TimeColumns& window);
  // Makes the history of it.
  void Make(const TimeColumns& window);

  // In the order of time.
  const std::vector<Mark>& marks() const { return marks_; }
  // The slots that there were in each column, on the mean of its time.
  std::vector<double> Slots(const TimeColumns& columns) const;

 private:
  struct Event {
    NodeId node;
    bool up = false;
    Time at;
    int slots = 0;
    std::string why;
  };
  struct Span {
    Time from;
    Time to;  // zero: still
    int slots = 0;
  };

  void Begin(NodeId node, Time at, int slots);
  void End(NodeId node, Time at);

  Time now_;
  std::vector<Event> events_;
  std::map<NodeId, int> here_;  // slots of those that are here now
  std::map<NodeId, std::vector<Span>> spans_;
  std::vector<Mark> marks_;
};

}  // namespace espalier::view
