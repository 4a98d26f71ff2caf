#pragma once

#include <string>
#include <vector>

#include "tuner/core/state/change.h"

namespace espalier {

// What was paid for the time in which slots of nodes of one kind were held.
struct Payment {
  std::string node_template;  // empty: of no template
  std::string gpu_type;
  bool spot = false;
  double price_per_hour = 0;  // of a node
  double slot_seconds = 0;    // held
  double node_seconds = 0;    // these slots' share of their nodes
  double cost = 0;
};

// For a trial, or all trials of a study: a row for each kind of node with terms on record, in the
// order of its fields. A node counts by the terms that it had at each moment. Idle time of nodes is
// attributed to no trial.
std::vector<Payment> PaymentsFor(const TunerState& state, const Trial& trial, Time now);
std::vector<Payment> PaymentsFor(const TunerState& state, const Study& study, Time now);

}  // namespace espalier
