#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "tuner/api/tuner.h"
#include "tuner/messages/replica_messages.h"

namespace espalier {

// What the service counts, for Prometheus. Counting may be done from any thread; what is a fact
// about the core's state is read when it is asked for (Text).
class Metrics {
 public:
  Metrics();

  // commit_s 0: there was nothing to commit.
  void CountBatch(std::size_t events, double commit_s);
  // How long one look, of a request that only reads, kept the core's owner from everything else.
  void CountLook(double seconds);
  void CountRequest(const std::string& frontend, const std::string& method,
                    const std::string& code);
  // The time is that from the request's arrival to its answer.
  void CountLatency(const std::string& frontend, const std::string& method, double seconds);
  void CountResize(double pause_s);
  void CountChecks(const ReplicaChecks& checks);
  // Counts a copy of a checkpoint to another node.
  void CountCopy(bool failed, std::int64_t bytes);

  // The text format. `queued` is the number of events that wait for the owner.
  absl::StatusOr<std::string> Text(Tuner& tuner, std::size_t queued) const;

 private:
  prometheus::Registry registry_;
  prometheus::Counter& events_;
  prometheus::Histogram& batch_size_;
  prometheus::Histogram& commit_;
  prometheus::Histogram& look_;
  prometheus::Histogram& resize_pause_;
  prometheus::Counter& copies_failed_;
  prometheus::Counter& copied_bytes_;
  prometheus::Family<prometheus::Counter>& checks_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& latency_;
};

// The metric families of the present state: studies and trials by state, slots, and the figures of
// each trial that trains.
std::vector<prometheus::MetricFamily> StateMetrics(const View& view);

// Resident memory of this process in bytes, 0 where it cannot be read.
double ResidentBytes();

}  // namespace espalier
