#include "tests/trial_runner/collectives/cuda/fake_nccl.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"

// What NCCL's handle points to.
struct ncclComm {
  std::int64_t world = 0;
  int rank = 0;
  ncclComm_t* address = nullptr;  // to be stored at once more
  int polls_left = 0;             // until what is under way is over
  ncclResult_t error = ncclSuccess;
  bool told = false;  // of the error
  bool joined = false;
  bool aborted = false;
};

namespace espalier {
namespace {

constexpr int kPolls = FakeNccl::kPolls;
constexpr std::chrono::seconds kPatience{60};  // for what must come, however busy the machine is

// One operation of all ranks: complete when each has begun it.
struct Operation {
  enum class Kind { kAllReduce, kBroadcast, kTransfer };
  struct Part {
    Kind kind = Kind::kAllReduce;
    void* memory = nullptr;
    std::size_t count = 0;
    ncclDataType_t type = ncclFloat32;
    int root = 0;
    const void* stream = nullptr;
  };
  std::map<int, Part> parts;  // by rank
  bool done = false;
};

struct World {
  int size = 0;
  std::map<int, ncclComm*> members;
  std::map<int, std::size_t> begun;  // operations, by rank
  std::vector<Operation> operations;
  // Sends and receives that wait for their other half, by sender and receiver.
  std::map<std::pair<int, int>, std::vector<Operation::Part>> sends;
  std::map<std::pair<int, int>, std::vector<Operation::Part>> receives;
};

struct Everything {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t worlds_given = 0;
  std::map<std::int64_t, World> worlds;
  std::set<std::unique_ptr<ncclComm>> communicators;  // kept when aborted: handles stay distinct
  std::map<const void*, int> pending;                 // by stream: operations that it waits for
  std::map<const ncclComm*, std::map<const void*, int>> held;  // of `pending`, by communicator
  bool holds_joins = false;
  int joins_to_fail = 0;
  int ids_to_fail = 0;
  int operations_to_fail = 0;
  bool tells_aborts = false;
  std::string failure = "remote process exited";
  FakeNccl::AtCall at_call = nullptr;
  std::int64_t joined = 0;
  int streams = 0;  // that exist
};

Everything* everything = nullptr;
thread_local int group_depth = 0;
thread_local ncclComm* of_group = nullptr;

// A call of the table.
std::unique_lock<std::mutex> Enter() {
  ESPALIER_CHECK(everything != nullptr, "NCCL is called after the test has ended");
  if (everything->at_call != nullptr) everything->at_call();
  return std::unique_lock(everything->mutex);
}

std::size_t SizeOf(ncclDataType_t type) {
  if (type == ncclFloat32) return sizeof(float);
  return type == ncclUint8 ? 1 : sizeof(double);  // no others are used
}

void Hold(const ncclComm& comm, const void* stream) {
  ++everything->pending[stream];
  ++everything->held[&comm][stream];
}

void Release(const ncclComm& comm, const void* stream) {
  --everything->pending[stream];
  --everything->held[&comm][stream];
  everything->changed.notify_all();
}

template <typename Number>
void Sum(std::map<int, Operation::Part>& parts) {
  const std::size_t count = parts.begin()->second.count;
  std::vector<Number> sum(count);
  for (auto& [rank, part] : parts) {
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] = static_cast<Number>(sum[i] + static_cast<Number*>(part.memory)[i]);
    }
  }
  for (auto& [rank, part] : parts) std::memcpy(part.memory, sum.data(), count * sizeof(Number));
}

// All ranks have begun it, and the memory of all is there: an aborted rank frees its own.
void Complete(Operation& operation) {
  Operation::Part& first = operation.parts.begin()->second;
  for (const auto& [rank, part] : operation.parts) {
    ESPALIER_CHECK(part.kind == first.kind && part.count == first.count &&
                       part.type == first.type && part.root == first.root,
                   "the ranks begin different operations");
  }
  if (first.kind == Operation::Kind::kBroadcast) {
    const void* from = operation.parts.at(first.root).memory;
    for (auto& [rank, part] : operation.parts) {
      if (rank != first.root) std::memcpy(part.memory, from, part.count * SizeOf(part.type));
    }
  } else if (first.type == ncclFloat32) {
    Sum<float>(operation.parts);
  } else if (first.type == ncclFloat64) {
    Sum<double>(operation.parts);
  } else if (first.type == ncclUint8) {
    Sum<std::uint8_t>(operation.parts);
  } else {
    Sum<std::int64_t>(operation.parts);
  }
  operation.done = true;
}

void CheckUsable(const ncclComm& comm) {
  ESPALIER_CHECK(!comm.aborted, "an operation on a communicator that was aborted");
  ESPALIER_CHECK(comm.joined && comm.polls_left == 0, "an operation on one that is in progress");
  ESPALIER_CHECK(comm.error == ncclSuccess || !comm.told,
                 "an operation on a communicator in error");
}

// Connections to a rank whose communicator is aborted break, and then nothing comes of it any more.
void NoteAborts(ncclComm& comm) {
  if (!everything->tells_aborts || !comm.joined || comm.error != ncclSuccess) return;
  for (const auto& [rank, member] : everything->worlds.at(comm.world).members) {
    if (member->aborted) comm.error = ncclRemoteError;
  }
}

// What a call says that finds an error; ncclSuccess: there is none.
ncclResult_t ErrorAtBegin(ncclComm& comm) {
  NoteAborts(comm);
  comm.told = comm.error != ncclSuccess;
  return comm.error;
}

ncclResult_t Begin(ncclComm& comm, const Operation::Part& part) {
  CheckUsable(comm);
  if (const ncclResult_t error = ErrorAtBegin(comm); error != ncclSuccess) return error;
  if (everything->operations_to_fail > 0) {
    // It is heard of later. The others wait for this rank's part.
    --everything->operations_to_fail;
    comm.error = ncclSystemError;
    comm.polls_left = kPolls;
    Hold(comm, part.stream);
    return ncclInProgress;
  }
  World& world = everything->worlds.at(comm.world);
  const std::size_t index = world.begun[comm.rank]++;
  if (world.operations.size() <= index) world.operations.resize(index + 1);
  Operation& operation = world.operations[index];
  operation.parts[comm.rank] = part;
  Hold(comm, part.stream);
  comm.polls_left = kPolls;
  if (static_cast<int>(operation.parts.size()) < world.size) return ncclInProgress;
  for (const auto& [rank, member] : world.members) {
    if (member->aborted) return ncclInProgress;  // its memory is gone: nothing comes any more
  }
  Complete(operation);
  for (const auto& [rank, member] : world.members) {
    Release(*member, operation.parts.at(rank).stream);
  }
  return ncclInProgress;
}

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  const auto lock = Enter();
  if (everything->ids_to_fail > 0) {
    --everything->ids_to_fail;
    return ncclSystemError;
  }
  std::memset(id, 0, sizeof(*id));
  const std::int64_t world = ++everything->worlds_given;
  std::memcpy(id, &world, sizeof(world));
  return ncclSuccess;
}

ncclResult_t InitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const auto lock = Enter();
  ESPALIER_CHECK(config != nullptr && config->blocking == 0, "a call that may block for ever");
  std::int64_t number = 0;
  std::memcpy(&number, &id, sizeof(number));
  World& world = everything->worlds[number];
  world.size = size;
  auto made = std::make_unique<ncclComm>();
  made->world = number;
  made->rank = rank;
  made->address = comm;
  made->polls_left = kPolls;
  if (everything->joins_to_fail > 0) {
    --everything->joins_to_fail;
    made->error = ncclUnhandledCudaError;
  } else {
    world.members[rank] = made.get();
  }
  *comm = made.get();
  everything->communicators.insert(std::move(made));
  return ncclInProgress;
}

ncclResult_t GetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const auto lock = Enter();
  ESPALIER_CHECK(comm != nullptr && !comm->aborted, "asked about a communicator that is gone");
  *state = ncclInProgress;
  if (!comm->joined && comm->error == ncclSuccess) {
    World& world = everything->worlds.at(comm->world);
    if (static_cast<int>(world.members.size()) < world.size || everything->holds_joins) {
      return ncclSuccess;
    }
  }
  if (comm->polls_left > 0 && --comm->polls_left > 0) return ncclSuccess;
  if (!comm->joined && comm->error == ncclSuccess) {
    comm->joined = true;
    *comm->address = comm;  // as NCCL's own thread does
    ++everything->joined;
  }
  NoteAborts(*comm);
  comm->told = comm->error != ncclSuccess;
  *state = comm->error;
  return ncclSuccess;
}

ncclResult_t Abort(ncclComm_t comm) {
  const auto lock = Enter();
  ESPALIER_CHECK(comm != nullptr, "no communicator");
  ESPALIER_CHECK(!comm->aborted, "aborted twice");
  if (!comm->joined) *comm->address = comm;  // the end of joining, whatever became of it
  comm->aborted = true;
  for (auto& [stream, count] : everything->held[comm]) {
    everything->pending[stream] -= count;
    count = 0;
  }
  everything->changed.notify_all();
  return ncclSuccess;
}

ncclResult_t AllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                       ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  const auto lock = Enter();
  ESPALIER_CHECK(from == to && operation == ncclSum, "another all-reduce than ours");
  return Begin(*comm, {Operation::Kind::kAllReduce, to, count, type, 0, stream});
}

ncclResult_t Broadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream) {
  const auto lock = Enter();
  ESPALIER_CHECK(from == to, "another broadcast than ours");
  return Begin(*comm, {Operation::Kind::kBroadcast, to, count, type, root, stream});
}

// The first halves that are there move.
void Match(World& world, int from, int to) {
  auto& sends = world.sends[{from, to}];
  auto& receives = world.receives[{from, to}];
  while (!sends.empty() && !receives.empty()) {
    ESPALIER_CHECK(sends[0].count == receives[0].count, "sizes of a send and its receive differ");
    if (world.members.at(from)->aborted || world.members.at(to)->aborted) return;
    std::memcpy(receives[0].memory, sends[0].memory, sends[0].count * SizeOf(sends[0].type));
    Release(*world.members.at(from), sends[0].stream);
    Release(*world.members.at(to), receives[0].stream);
    sends.erase(sends.begin());
    receives.erase(receives.begin());
  }
}

ncclResult_t Transfer(ncclComm& comm, void* memory, std::size_t count, ncclDataType_t type,
                      int from, int to, bool sends, const void* stream) {
  ESPALIER_CHECK(group_depth > 0, "sends and receives begin in a group");
  CheckUsable(comm);
  of_group = &comm;
  NoteAborts(comm);
  if (comm.error != ncclSuccess) return comm.error;  // and the group's end tells of it
  World& world = everything->worlds.at(comm.world);
  Hold(comm, stream);
  (sends ? world.sends : world.receives)[{from, to}].push_back(
      {Operation::Kind::kTransfer, memory, count, type, 0, stream});
  Match(world, from, to);
  return ncclSuccess;
}

ncclResult_t Send(const void* memory, std::size_t count, ncclDataType_t type, int peer,
                  ncclComm_t comm, cudaStream_t stream) {
  const auto lock = Enter();
  return Transfer(*comm, const_cast<void*>(memory), count, type, comm->rank, peer, true, stream);
}

ncclResult_t Receive(void* memory, std::size_t count, ncclDataType_t type, int peer,
                     ncclComm_t comm, cudaStream_t stream) {
  const auto lock = Enter();
  return Transfer(*comm, memory, count, type, peer, comm->rank, false, stream);
}

ncclResult_t GroupStart() {
  const auto lock = Enter();
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t GroupEnd() {
  const auto lock = Enter();
  --group_depth;
  if (of_group == nullptr) return ncclSuccess;
  ncclComm& comm = *std::exchange(of_group, nullptr);
  comm.told = comm.error != ncclSuccess;
  if (comm.told) return comm.error;
  comm.polls_left = kPolls;
  return ncclInProgress;
}

const char* ErrorString(ncclResult_t) { return "unhandled error"; }
const char* LastError(ncclComm_t) { return everything->failure.c_str(); }

// What a thread's current stream was given behind a communicator's.
class Following {
 public:
  // At once, where nothing is to be waited for any more.
  void Add(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      if (!over_) {
        work_.push_back(std::move(work));
        return;
      }
    }
    work();
  }
  bool over() const {
    const std::lock_guard lock(mutex_);
    return over_;
  }
  void Run() {
    std::vector<std::function<void()>> now;
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      now.swap(work_);
    }
    for (const auto& work : now) work();
  }

 private:
  mutable std::mutex mutex_;
  bool over_ = false;
  std::vector<std::function<void()>> work_;
};

thread_local std::shared_ptr<Following> following;

class FakeStream final : public CommunicatorStream {
 public:
  FakeStream() {
    const std::lock_guard lock(everything->mutex);
    ++everything->streams;
  }
  ~FakeStream() override {
    const std::lock_guard lock(everything->mutex);
    ESPALIER_CHECK(everything->pending[this] == 0, "a stream that works is destroyed");
    everything->pending.erase(this);
    --everything->streams;
    everything->changed.notify_all();
  }
  cudaStream_t handle() const override {
    return reinterpret_cast<cudaStream_t>(const_cast<FakeStream*>(this));
  }
  void FollowCurrent() override {}
  void LeadCurrent() override { following = after_ = std::make_shared<Following>(); }
  void Mark() override { marks_current_ = false; }
  void MarkCurrent() override { marks_current_ = true; }
  bool Passed() const override {
    {
      const std::lock_guard lock(everything->mutex);
      if (everything->pending[this] != 0) return false;
    }
    if (after_ && marks_current_) after_->Run();
    return true;
  }
  void Synchronize() override {
    std::unique_lock lock(everything->mutex);
    const bool ended = everything->changed.wait_for(lock, kPatience,
                                                    [&] { return everything->pending[this] == 0; });
    ESPALIER_CHECK(ended, "a stream that was to be waited for is held by an operation");
    if (after_) after_->Run();  // as a GPU does, whatever has become of the operations
  }

 private:
  std::shared_ptr<Following> after_;
  bool marks_current_ = false;
};

}  // namespace

FakeNccl::FakeNccl() {
  ESPALIER_CHECK(everything == nullptr, "one at a time");
  everything = new Everything;
}

FakeNccl::~FakeNccl() {
  {
    // Communicators are aborted by threads of their own, which destroy the streams last.
    std::unique_lock lock(everything->mutex);
    const bool gone =
        everything->changed.wait_for(lock, kPatience, [] { return everything->streams == 0; });
    ESPALIER_CHECK(gone, "a communicator was never aborted");
    for (const auto& comm : everything->communicators) ESPALIER_CHECK(comm->aborted, "one is left");
  }
  delete std::exchange(everything, nullptr);
}

const NcclApi& FakeNccl::api() const {
  static constexpr NcclApi kApi = {.get_unique_id = GetUniqueId,
                                   .init_rank = InitRank,
                                   .abort = Abort,
                                   .get_async_error = GetAsyncError,
                                   .all_reduce = AllReduce,
                                   .broadcast = Broadcast,
                                   .send = Send,
                                   .receive = Receive,
                                   .group_start = GroupStart,
                                   .group_end = GroupEnd,
                                   .error_string = ErrorString,
                                   .last_error = LastError};
  return kApi;
}

std::unique_ptr<CommunicatorStream> FakeNccl::MakeStream() {
  return std::make_unique<FakeStream>();
}

bool FakeNccl::CurrentStreamFollows() { return following != nullptr && !following->over(); }

void FakeNccl::GiveCurrentStream(std::function<void()> work) {
  if (following == nullptr) {
    work();
  } else {
    following->Add(std::move(work));
  }
}

void FakeNccl::HoldJoins(bool hold) {
  const std::lock_guard lock(everything->mutex);
  everything->holds_joins = hold;
}

void FakeNccl::FailJoins(int count, const std::string& text) {
  const std::lock_guard lock(everything->mutex);
  everything->joins_to_fail = count;
  everything->failure = text;
}

void FakeNccl::FailIds(int count) {
  const std::lock_guard lock(everything->mutex);
  everything->ids_to_fail = count;
}

void FakeNccl::FailOperations(int count) {
  const std::lock_guard lock(everything->mutex);
  everything->operations_to_fail = count;
}

void FakeNccl::BreakAll() {
  const std::lock_guard lock(everything->mutex);
  for (const auto& comm : everything->communicators) comm->error = ncclRemoteError;
}

void FakeNccl::TellAborts() {
  const std::lock_guard lock(everything->mutex);
  everything->tells_aborts = true;
}

void FakeNccl::CallAtEach(AtCall at_call) { everything->at_call = at_call; }

std::int64_t FakeNccl::joined() const {
  const std::lock_guard lock(everything->mutex);
  return everything->joined;
}

std::int64_t FakeNccl::existing() const {
  const std::lock_guard lock(everything->mutex);
  std::int64_t count = 0;
  for (const auto& comm : everything->communicators) count += comm->aborted ? 0 : 1;
  return count;
}

}  // namespace espalier
