#include "allocator/simulator/cluster_record.h"

#include <algorithm>
#include <utility>

namespace espalier {

namespace {

// Interpolated between the two nearest; `sorted` is not empty.
double Quantile(const std::vector<double>& sorted, double q) {
  const double rank = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

ClusterRecord::ClusterRecord(const ClusterLoad& load) : open_(load.jobs.size()) {
  timeline_.slots = load.nodes * load.slots_per_node;
  for (const ClusterJob& job : load.jobs) {
    timeline_.rows.push_back({.name = job.name,
                              .submitted_s = job.submitted_s,
                              .ended_s = -1,
                              .outcome = {},
                              .resizes = 0,
                              .spans = {}});
  }
}

void ClusterRecord::Close(std::size_t job, double at_s) {
  const Open& open = open_[job];
  if (open.slots > 0 && at_s > open.from_s) {
    timeline_.rows[job].spans.push_back({open.from_s, at_s, open.slots, open.nodes});
  }
}

void ClusterRecord::Decided(std::size_t job, double at_s, int slots, int nodes, int resizes,
                            std::string reason) {
  Close(job, at_s);
  timeline_.decisions.push_back({.at_s = at_s,
                                 .row = timeline_.rows[job].name,
                                 .from_slots = open_[job].slots,
                                 .to_slots = slots,
                                 .reason = std::move(reason)});
  timeline_.rows[job].resizes = resizes;
  open_[job] = {at_s, slots, nodes};
}

void ClusterRecord::Completed(std::size_t job, double at_s) {
  Close(job, at_s);
  open_[job] = {};
  timeline_.rows[job].ended_s = at_s;
  timeline_.rows[job].outcome = "complete";
}

Timeline ClusterRecord::Finish() && {
  const ClusterFigures figures = FiguresOf(timeline_);
  timeline_.figures = {
      {"average JCT (s)", figures.average_s},  {"median JCT (s)", figures.p50_s},
      {"p99 JCT (s)", figures.p99_s},          {"makespan (s)", figures.makespan_s},
      {"resizes a job", figures.mean_resizes}, {"slot use", figures.slot_use}};
  return std::move(timeline_);
}

ClusterFigures FiguresOf(const Timeline& timeline) {
  ClusterFigures figures;
  std::vector<double> times;
  double slot_seconds = 0;
  for (const TimelineRow& row : timeline.rows) {
    for (const TimelineSpan& span : row.spans) {
      slot_seconds += (span.to_s - span.from_s) * span.slots;
    }
    if (row.ended_s < 0) continue;
    times.push_back(row.ended_s - row.submitted_s);
    figures.average_s += times.back();
    figures.mean_resizes += row.resizes;
    figures.makespan_s = std::max(figures.makespan_s, row.ended_s);
  }
  if (times.empty()) return figures;
  std::sort(times.begin(), times.end());
  figures.average_s /= static_cast<double>(times.size());
  figures.mean_resizes /= static_cast<double>(times.size());
  figures.p50_s = Quantile(times, 0.5);
  figures.p99_s = Quantile(times, 0.99);
  figures.slot_use = slot_seconds / (timeline.slots * figures.makespan_s);
  return figures;
}

}  // namespace espalier
