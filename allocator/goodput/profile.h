#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace espalier {

// The shape a step ran in.
struct ProfileKey {
  int nodes = 1;
  int replicas = 1;
  std::int64_t atomic_batch_size = 1;

  friend auto operator<=>(const ProfileKey&, const ProfileKey&) = default;
};

// Sums over steps run in one shape, as a trial reports them.
struct ProfileEntry {
  ProfileKey key;
  std::int64_t accumulation_count = 0;  // microbatches without all-reduce
  double accumulation_time_s = 0;       // their summed time
  std::int64_t optimizer_count = 0;     // optimizer steps
  double optimizer_time_s = 0;          // summed time of their last microbatch and all-reduce
  double sync_time_s = 0;               // of which: waiting for the all-reduce

  friend bool operator==(const ProfileEntry&, const ProfileEntry&) = default;
};

// Mean times of one shape, what the throughput model is fitted to.
struct ProfileObservation {
  ProfileKey key;
  double grad_time_s = 0;   // one microbatch without its all-reduce
  double optim_time_s = 0;  // the last microbatch with its all-reduce
};

// The step times of one trial by shape. Bounded: it keeps the kMaxShapes shapes that were added to
// last, and the older half of each shape's sums fades once kFadeCount steps are in, so that a
// machine that has become slower or faster shows. A pure value, with no thread rule of its own.
class Profile {
 public:
  static constexpr std::size_t kMaxShapes = 128;
  static constexpr std::int64_t kFadeCount = 512;

  // Entries with a negative sum, a time that is not finite, or an impossible shape are ignored: a
  // trial's clock may have been set back, and one bad report must not spoil the fit.
  void Add(const ProfileEntry& entry);

  // Shapes in which at least one optimizer step was timed, ascending by key.
  std::vector<ProfileObservation> Observations() const;
  // The most replicas with which any optimizer step was timed; 0 if there is none.
  int max_replicas() const;
  bool empty() const { return shapes_.empty(); }
  std::size_t size() const { return shapes_.size(); }

 private:
  struct Sums {
    ProfileEntry entry;
    std::int64_t last_added = 0;  // counts calls of Add
  };

  std::map<ProfileKey, Sums> shapes_;
  std::int64_t added_ = 0;
};

}  // namespace espalier
