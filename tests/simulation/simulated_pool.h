#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "tuner/core/core.h"
#include "tuner/simulator/agenda.h"
#include "tuner/storage/storage.h"

namespace espalier {

// What may go wrong, as probabilities for each simulated event.
struct Faults {
  double kill_replica = 0;
  double break_stream = 0;
  double lose_node = 0;      // the machine dies with all its processes, and comes back empty
  double crash_service = 0;  // between commit and send, or before the commit
  double double_message = 0;
  double stop_study = 0;     // and resume it later
  double crash_program = 0;  // a replica exits with code 1
  double hang = 0;           // a replica's main thread stops for good; its process lives
  double freeze = 0;         // a whole replica stops; its agent kills it after its lease
  double cut_off = 0;        // of each formed group: it cannot train, though all its members answer
  double slow_slot = 0;      // of each slot: replicas there take three times as long
  bool profiles = false;     // trials tell step times, so that they may grow beyond two replicas
  double client = 0;         // a client that runs trials by itself asks for slots, or the like
  double large_state = 0;    // of each group: it hands over state for longer than a stall may last
  double stalled_state = 0;  // of those: it stops on the way
  double cut_nodes = 0;  // of each group over several nodes: two of them cannot talk, for a while
  double lose_disk = 0;  // of each lost node: its disk goes with it
  double together = 0;   // no fault: of each event that it is settled with the next one
  double damage = 0;     // a checkpoint on a disk rots
  double clone = 0;      // no fault: a trial that trains is cloned
  double fail_joining =
      0;  // of each replica that joins: it exits with code 1 within its first steps
};

// The production core and storage on virtual time, with simulated agents and replicas that behave
// like the real ones: messages take time, streams break and are dialled again with what was not
// acknowledged, processes die. After every step the invariants are checked; Fail() tells the first
// that broke.
class SimulatedPool {
 public:
  // Trials report steps 1 to `last_step`.
  SimulatedPool(std::uint64_t seed, int nodes, int slots_per_node, Faults faults,
                std::int64_t last_step = 9);

  // A study of elastic (or, if not, plain) trials with an analytic curve.
  StudySpec MakeStudy(const std::string& name, bool elastic,
                      BatchMode mode = BatchMode::kFixed) const;
  Reply Client(const Event& event);

  // Runs until nothing of the studies is left to do or `until_s` of virtual time have passed.
  void Run(double until_s);
  void StopFaults() {
    faults_ = {};
    cuts_.clear();
  }
  // From now on replicas of one node cannot open connections to those of the other.
  void Cut(std::size_t from, std::size_t to, Contact how, double for_s);

  bool AllStudiesEnded() const;
  bool NothingHeld() const;
  const TunerState& state() const { return core_->state(); }
  std::vector<NodeView> nodes() const { return core_->Nodes(); }
  const std::string& failure() const { return failure_; }
  std::int64_t steps() const { return steps_; }
  double now_s() const { return Seconds(agenda_.now()); }
  int restarts() const { return restarts_; }
  int client_grants() const { return client_grants_; }
  // What went wrong so far, by kind.
  const std::map<std::string, int>& met() const { return met_; }
  struct Handovers {
    int done = 0;     // of large states
    int stalled = 0;  // had stopped on the way, and were begun anew
    int cut_off = 0;  // were begun anew although they moved and all members lived
  };
  const Handovers& handovers() const { return handovers_; }
  struct CheckpointCounts {
    int copies = 0;   // second ones
    int fetched = 0;  // to where a trial starts
    int older = 0;    // starts from an older one, said so
    int dropped = 0;  // copies that were not needed
    int in_vain = 0;  // fetches that failed
    int damaged = 0;  // found on a disk where a trial was to start, and set aside
  };
  const CheckpointCounts& checkpoints() const { return checkpoints_; }
  // Damages the newest checkpoint of each trial on the node.
  void Damage(std::size_t index);
  // Trials of which more than `most` nodes keep files.
  int TrialsOnMoreNodesThan(int most) const;
  // The machine dies, and its disk if it says so; it comes back after so long, or never.
  void LoseNode(std::size_t index, bool with_disk, double back_after_s);
  const std::vector<Change>& committed() const { return committed_; }

 private:
  struct Process {
    ReplicaId id;
    TrialId trial;
    int slot = 0;
    std::vector<int> more_slots;  // its own as well, until it is ready
    bool elastic = true;
    std::optional<ReplicaReady> ready;
    bool Holds(int index) const {
      return index == slot ||
             (!ready && std::find(more_slots.begin(), more_slots.end(), index) != more_slots.end());
    }
    // Of ranks on several nodes: its place among them, and whether it waits to be told where to
    // meet.
    std::optional<int> node_rank;
    bool waits = false;
    bool met = false;                   // it was told
    std::int64_t generation = 0;        // trains in this one
    std::optional<Membership> regroup;  // newest one received
    std::int64_t step = 0;
    std::optional<StartReplicaCommand> fetching;  // its checkpoint is on its way here
    int fetch_rounds = 0;                         // in vain
    std::string started_from;                     // fingerprint
    std::optional<int> fails_after;               // so many moments of work
    bool stopping = false;
    bool hung = false;
    bool exited = false;  // kept until its exit is acknowledged
  };
  struct DiskFile {
    std::int64_t step = 0;
    std::string fingerprint;
    bool fetched = false;
    bool damaged = false;
  };
  struct SimNode {
    std::string name;
    int slots = 0;
    NodeId id;
    bool up = true;
    bool connected = false;
    Time last_arrival;  // of what was sent so far
    int session = 0;    // messages of an older stream are dropped
    std::map<ReplicaId, Process> processes;
    std::deque<std::pair<ReplicaId, Event>> unacknowledged;
    std::map<TrialId, std::vector<DiskFile>> disk;  // checkpoints, ascending by step
  };
  // A state on its way to those who join, by trial and generation.
  struct Transfer {
    int seconds = 0;
    int stops_after = 0;  // never, if that is later
    int moved = 0;        // seconds
  };

  // Only if the node's stream is then still the one of now.
  void OnStream(std::size_t index, Time at, std::function<void()> happening);
  Reply StepCore(const Event& event);
  void RestartService();
  void KeepTicking();
  void Resume(const std::string& study);
  void Send(const Command& command);
  void Do(std::size_t index, const StartReplicaCommand& command);
  void Do(std::size_t index, const RegroupCommand& command);
  void Do(std::size_t index, const StopReplicaCommand& command);
  void Do(std::size_t index, const CopyCheckpointCommand& command);
  void Do(std::size_t index, const DropCheckpointsCommand& command);
  void Do(std::size_t index, const RanksMeetCommand& command);
  void Do(std::size_t, const EndSparesCommand&) {}  // nodes have no GPUs here
  void CheckStart(std::size_t index, const StartReplicaCommand& start);
  static RanksWait MeetingOf(const Process& process);
  void Work(std::size_t index, ReplicaId id);
  void TryForm(TrialId trial, std::int64_t generation);
  bool StateHasMoved(TrialId trial, std::int64_t generation, std::size_t members);
  void MoveState(TrialId trial, std::int64_t generation);
  void CountHandover(const Process& process);
  void Emit(std::size_t index, ReplicaId from, Event event);
  void Transmit(std::size_t index, ReplicaId from, const Event& event);
  void Arrive(std::size_t index, ReplicaId from, const Event& event);
  void Exit(std::size_t index, ReplicaId id, int code, int signal, const std::string& error = {},
            CheckpointFailure checkpoint = CheckpointFailure::kNone);
  bool WaitsInVain(const Process& process);
  bool IsCut(std::size_t from, std::size_t to) const;
  bool IsCut(const std::vector<Member>& members) const;
  void CutSome(const std::vector<Member>& members);
  std::vector<ReplicaContact> ContactsOf(const Process& process) const;
  bool SaysWhomItCannotReach(std::size_t index, const Process& process);
  void TellProgress(std::size_t index, const Process& process);
  // Checkpoints on the nodes' disks (simulated_checkpoints.cc).
  const DiskFile* OnDisk(std::size_t index, TrialId trial, const std::string& fingerprint) const;
  void SaveCheckpoint(std::size_t index, const Process& process);
  enum class Fetch { kHere, kNotNow, kNowhere };
  Fetch FetchTo(std::size_t index, TrialId trial, const CheckpointLabel& what,
                const std::vector<NodeId>& sources);
  bool IsHereAndSound(std::size_t index, TrialId trial, const std::string& fingerprint);
  void GoOnFetching(std::size_t index, Process& process);
  void CopyTo(std::size_t index, const CopyCheckpointCommand& command);
  void CloneATrial();
  void CloneOn(std::size_t index, const CopyCheckpointCommand& command);
  HeldCheckpoints HeldOn(std::size_t index) const;
  void CheckNewest(const std::vector<Change>& changes);
  void CheckGroupStart(TrialId trial, std::int64_t generation, std::int64_t step);
  void InjectHangs(std::size_t index);
  void CountKill(const Process& process);
  void Dial(std::size_t index);
  void BreakStream(std::size_t index);
  void InjectFaults();
  void ActAsClient();
  void CheckGrant(const SlotsHeldChanged& grant);
  void CheckInvariants();
  void Fail(const std::string& what);
  std::size_t NodeIndex(NodeId id) const;
  Process* FindProcess(ReplicaId id);

  const std::int64_t last_step_;
  Random random_;
  Faults faults_;
  Agenda agenda_{Time{1'000'000}};
  std::vector<SimNode> nodes_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Core> core_;
  std::vector<Change> committed_;
  std::set<std::string> elastic_;
  // (trial, step) of every value the service has acknowledged.
  std::set<std::pair<TrialId, std::int64_t>> acknowledged_;
  std::map<TrialId, std::int64_t> generations_;
  std::set<std::pair<TrialId, std::int64_t>> cut_off_;  // generations that cannot train
  struct CutWay {
    Time until;
    Contact how = Contact::kSilent;
  };
  std::map<std::pair<std::size_t, std::size_t>, CutWay> cuts_;  // from one node to another
  std::set<std::pair<std::size_t, int>> slow_slots_;            // by node and slot
  std::map<std::pair<TrialId, std::int64_t>, Transfer> transfers_;
  Handovers handovers_;
  std::int64_t next_file_ = 0;
  std::map<TrialId, CheckpointLabel> newest_;  // as acknowledged
  // What was acknowledged when the generation was ordered.
  std::map<std::pair<TrialId, std::int64_t>, std::int64_t> saved_before_;
  CheckpointCounts checkpoints_;
  std::map<std::string, int> met_;
  std::int64_t steps_ = 0;
  int restarts_ = 0;
  std::vector<TrialId> client_trials_;  // that clients run, as far as these know
  int client_grants_ = 0;
  std::string failure_;
};

}  // namespace espalier
