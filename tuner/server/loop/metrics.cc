#include "tuner/server/loop/metrics.h"

namespace espalier {

namespace {

using prometheus::Histogram;

prometheus::Histogram& AddHistogram(prometheus::Registry& registry, const std::string& name,
                                    const std::string& text,
                                    const Histogram::BucketBoundaries& bounds) {
  return prometheus::BuildHistogram().Name(name).Help(text).Register(registry).Add({}, bounds);
}

}  // namespace

Metrics::Metrics()
    : events_(prometheus::BuildCounter()
                  .Name("espalier_events_total")
                  .Help("Events that the core has taken")
                  .Register(registry_)
                  .Add({})),
      batch_size_(AddHistogram(registry_, "espalier_batch_events", "Events in one commit",
                               {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024})),
      commit_(AddHistogram(registry_, "espalier_commit_seconds", "Time of one commit",
                           {1e-5, 1e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.5, 1, 5})),
      look_(AddHistogram(
          registry_, "espalier_look_seconds",
          "Time for which one request that only reads the core's state kept all else waiting",
          {1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 7e-3, 1e-2, 2e-2, 5e-2, 0.1, 1})),
      resize_pause_(AddHistogram(registry_, "espalier_regroup_pause_seconds",
                                 "Training pause of one regroup, longest over its replicas",
                                 {1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1, 2, 5, 10})),
      copies_failed_(prometheus::BuildCounter()
                         .Name("espalier_checkpoint_copies_failed_total")
                         .Help("Copies of checkpoints that could not be brought to a node")
                         .Register(registry_)
                         .Add({})),
      copied_bytes_(prometheus::BuildCounter()
                        .Name("espalier_checkpoint_bytes_total")
                        .Help("Bytes of checkpoints that agents have fetched from one another")
                        .Register(registry_)
                        .Add({})),
      checks_(prometheus::BuildCounter()
                  .Name("espalier_replica_checks_total")
                  .Help("Comparisons of replicas that train one model, by their result")
                  .Register(registry_)),
      requests_(prometheus::BuildCounter()
                    .Name("espalier_requests_total")
                    .Help("Requests answered, by frontend, method and status code")
                    .Register(registry_)),
      latency_(prometheus::BuildHistogram()
                   .Name("espalier_request_seconds")
                   .Help("Time from a request's arrival to its answer, by frontend and method")
                   .Register(registry_)) {
  CountChecks({});  // each result is listed, also with 0
}

void Metrics::CountBatch(std::size_t events, double commit_s) {
  events_.Increment(static_cast<double>(events));
  batch_size_.Observe(static_cast<double>(events));
  if (commit_s > 0) commit_.Observe(commit_s);
}

void Metrics::CountLook(double seconds) { look_.Observe(seconds); }

void Metrics::CountRequest(const std::string& frontend, const std::string& method,
                           const std::string& code) {
  requests_.Add({{"frontend", frontend}, {"method", method}, {"code", code}}).Increment();
}

void Metrics::CountLatency(const std::string& frontend, const std::string& method, double seconds) {
  latency_
      .Add({{"frontend", frontend}, {"method", method}},
           Histogram::BucketBoundaries{1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1,
                                       0.2, 0.5, 1, 5})
      .Observe(seconds);
}

void Metrics::CountResize(double pause_s) { resize_pause_.Observe(pause_s); }

void Metrics::CountChecks(const ReplicaChecks& checks) {
  const auto add = [this](const char* result, std::int64_t count) {
    if (count >= 0) checks_.Add({{"result", result}}).Increment(static_cast<double>(count));
  };
  add("alike", checks.alike);
  add("norms", checks.norms);
  add("unlike", checks.unlike);
}

void Metrics::CountCopy(bool failed, std::int64_t bytes) {
  if (failed) copies_failed_.Increment();
  if (bytes > 0) copied_bytes_.Increment(static_cast<double>(bytes));
}

}  // namespace espalier
