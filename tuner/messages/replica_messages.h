#pragma once

// What a replica tells the service, as the core and the replica's own runtime see it. control.proto
// says what goes over the wire; `wire/` is the only mapping between the two.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "allocator/goodput/goodput.h"
#include "allocator/goodput/profile.h"
#include "base/ids.h"
#include "tuner/messages/training_figures.h"

namespace espalier {

inline constexpr std::size_t kMaxNotRehearsed = 500;  // bytes

// The program is elastic, has built its model and waits for its first group.
struct ReplicaReady {
  std::string address;           // host:port of its rendezvous
  BatchBounds batch;             // of the trial; the same from each replica
  std::int64_t total_steps = 0;  // steps or epochs that the program means to report; 0: unknown
  // Of one that joins a group: why its first step was not rehearsed, in kMaxNotRehearsed bytes at
  // most; empty: it was.
  std::string not_rehearsed{};

  friend bool operator==(const ReplicaReady&, const ReplicaReady&) = default;
};

inline constexpr std::size_t kMaxTransport = 256;  // bytes

// The replica trains in the group of `generation`.
struct ReplicaRegrouped {
  std::int64_t generation = 0;
  std::int64_t step = 0;   // optimizer steps done when the group formed
  double pause_s = 0;      // from the end of the last step before to the group's start
  double form_s = 0;       // of which: forming the group
  double broadcast_s = 0;  // of which: parameters and state
  // How gradients on GPUs go to the other members, as in "by NCCL"; empty: there are none. What is
  // longer than kMaxTransport counts as nothing.
  std::string transport{};

  friend bool operator==(const ReplicaRegrouped&, const ReplicaRegrouped&) = default;
};

// The bounds of one report.
inline constexpr std::size_t kMaxExtraFigures = 100;
inline constexpr std::size_t kMaxFigureName = 256;  // bytes

// One value of the study's metric, from rank 0. Its successor sends it again after a loss: trial
// and step name it once and for all.
struct ReplicaReport {
  std::int64_t step = 0;  // the program's own count, usually of epochs
  double value = 0;
  double progress = 0;                    // scale-invariant iterations so far
  std::map<std::string, double> extra{};  // further figures of the same step, by name

  friend bool operator==(const ReplicaReport&, const ReplicaReport&) = default;
};

// How long one replica computed (all but waiting for others), summed over `steps` steps.
struct ReplicaTime {
  ReplicaId replica;
  std::int64_t steps = 0;
  double compute_time_s = 0;

  friend bool operator==(const ReplicaTime&, const ReplicaTime&) = default;
};

// Comparisons of a trial's replicas, by what they came to.
struct ReplicaChecks {
  std::int64_t alike = 0;
  std::int64_t norms = 0;  // were of norms, as replicas round differently
  std::int64_t unlike = 0;

  friend bool operator==(const ReplicaChecks&, const ReplicaChecks&) = default;
};

// What the goodput model is fitted to. Rank 0 sends it about once a second while training.
struct ReplicaProgress {
  std::int64_t generation = 0;
  std::int64_t step = 0;  // optimizer steps
  double progress = 0;
  double epoch = 0;  // passes over the data, with fraction
  std::int64_t global_batch_size = 0;
  GradientNoise noise;
  std::vector<ProfileEntry> profile;       // since the last ReplicaProgress
  std::vector<ReplicaTime> replica_times;  // since the last ReplicaProgress
  TrainingFigures figures;                 // those that the replica knows
  ReplicaChecks checks;                    // since the last ReplicaProgress

  friend bool operator==(const ReplicaProgress&, const ReplicaProgress&) = default;
};

struct ReplicaCheckpoint {
  std::string path;
  std::int64_t step = 0;  // optimizer steps in it
  // Filled in by the agent, for a checkpoint in the folder that the trial was given.
  std::string name{};         // of its file there; empty: the whole folder
  std::string fingerprint{};  // of its content; empty: it cannot be copied

  friend bool operator==(const ReplicaCheckpoint&, const ReplicaCheckpoint&) = default;
};

// The program has come to its end. Rank 0 says so.
struct ReplicaFinished {
  std::optional<double> value{};  // final; without it the last reported value is
  std::string failure{};          // why the program gave up by its own verdict; empty: it did not
  ReplicaChecks checks{};         // since the last ReplicaProgress
  std::vector<std::string> unread{};  // parameters that were given and not asked for

  friend bool operator==(const ReplicaFinished&, const ReplicaFinished&) = default;
};

// What became of a replica's attempt to speak to another one at its address.
enum class Contact {
  kUnknown,   // not tried
  kAnswered,  // the other process has answered
  kRefused,   // the other machine, or a router, said no at once
  kSilent,    // nothing came back within the limit: its packets, or the answers, are lost
  kMute,      // the other machine took the connection, the process did not answer
};

struct ReplicaContact {
  ReplicaId replica;  // the other
  std::string address;
  Contact contact = Contact::kUnknown;
  std::string error{};  // the system's error text; empty: it answered

  friend bool operator==(const ReplicaContact&, const ReplicaContact&) = default;
};

// A replica has waited for the others of its group for longer than any of them should take.
struct ReplicaStuck {
  std::int64_t generation = 0;
  double waited_s = 0;
  std::vector<ReplicaContact> contacts{};  // each of the others, as it found them meanwhile

  friend bool operator==(const ReplicaStuck&, const ReplicaStuck&) = default;
};

// What a replica does between two groups.
enum class GroupPhase {
  kNone,         // nothing: it trains, or waits for the service
  kMeeting,      // the others of its new group
  kHandingOver,  // or taking over the training state
  kSaving,       // a checkpoint, before it leaves
};

// How far a replica has come on its way to the group of `generation`, or out. It is sent while
// there is progress, so that no replica that makes progress is taken to hang.
struct ReplicaForming {
  std::int64_t generation = 0;
  GroupPhase phase = GroupPhase::kNone;
  std::int64_t bytes = 0;        // moved in this phase so far
  std::int64_t bytes_total = 0;  // 0: unknown

  friend bool operator==(const ReplicaForming&, const ReplicaForming&) = default;
};

// Of what starts the ranks of a launcher on one of a trial's several nodes: they can be started,
// and wait to be told where all meet.
struct RanksWait {
  std::string address;  // host:port, held for them on the node with rank 0; empty: on another

  friend bool operator==(const RanksWait&, const RanksWait&) = default;
};

// A rank there has failed, and the others of its node are told to end; the exit follows.
struct RanksFailed {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
  double ago_s = 0;    // when it failed, before this was said: clocks of nodes differ
  bool noted = false;  // it has noted its exception itself, and ago_s is of that

  friend bool operator==(const RanksFailed&, const RanksFailed&) = default;
};

// The first rank there that had ended with 0 by itself; the exit follows.
struct RanksLeft {
  int rank = 0;
  double ago_s = 0;  // when it ended, before this was said

  friend bool operator==(const RanksLeft&, const RanksLeft&) = default;
};

using ReplicaMessage =
    std::variant<ReplicaReady, ReplicaRegrouped, ReplicaReport, ReplicaProgress, ReplicaCheckpoint,
                 ReplicaFinished, ReplicaStuck, ReplicaForming, RanksWait, RanksFailed, RanksLeft>;

}  // namespace espalier
