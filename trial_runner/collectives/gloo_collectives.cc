#include "trial_runner/collectives/gloo_collectives.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Logging.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trial_runner/collectives/rendezvous.h"
#include "tuner/base/check.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

using GlooGroup = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

// How long members may be apart when they form a group, and how long a collective may take. Both
// are far beyond what happens: the control plane's word ends a hopeless wait much sooner.
constexpr std::chrono::minutes kFormationLimit{15};
constexpr std::chrono::minutes kCollectiveLimit{60};

using SteadyClock = std::chrono::steady_clock;

// What waiting threads, Gloo's threads and Abandon() share. It outlives the Collectives object.
struct Bell {
  std::mutex mutex;
  std::condition_variable rung;
  std::int64_t abandoned_below = 0;
  // To be abandoned by those who wait for longer than `grace`.
  std::int64_t fading_below = 0;
  SteadyClock::time_point fading_since;
  SteadyClock::duration grace{};
};

// The end of one asynchronous operation; guarded by Bell::mutex.
struct Completion {
  bool done = false;
  std::string error;
  GlooGroup group;  // of a formation
};

void Complete(Bell& bell, Completion& completion, std::string error, GlooGroup group = {}) {
  {
    const std::lock_guard lock(bell.mutex);
    completion.done = true;
    completion.error = std::move(error);
    completion.group = std::move(group);
  }
  bell.rung.notify_all();
}

// LibTorch's messages go on with a stack.
std::string FirstLine(const std::exception& e) {
  const std::string message = e.what();
  return message.substr(0, message.find('\n'));
}

at::ScalarType ScalarTypeOf(CollectiveBuffer::Type type) {
  switch (type) {
    case CollectiveBuffer::Type::kFloat:
      return at::kFloat;
    case CollectiveBuffer::Type::kDouble:
      return at::kDouble;
    case CollectiveBuffer::Type::kInt64:
      return at::kLong;
    case CollectiveBuffer::Type::kByte:
      return at::kByte;
  }
  ESPALIER_CHECK(false, "unknown buffer type");
}

at::Tensor TensorOf(const CollectiveBuffer& buffer) {
  return at::from_blob(
      buffer.start, {buffer.count}, [owner = buffer.owner](void*) {},
      at::TensorOptions().dtype(ScalarTypeOf(buffer.type)));
}

std::shared_ptr<::gloo::transport::Device> MakeDevice(const GlooOptions& options) {
  return options.interface.empty()
             ? c10d::ProcessGroupGloo::createDeviceForHostname(options.host)
             : c10d::ProcessGroupGloo::createDeviceForInterface(options.interface);
}

// The rendezvous table as Gloo wants it. Gloo sets, waits for and gets keys; nothing else is used.
class GlooTable final : public c10d::Store {
 public:
  explicit GlooTable(std::shared_ptr<RendezvousClient> client) : client_(std::move(client)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<GlooTable>(client_);
  }
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    const absl::Status status =
        client_->Set(key, {reinterpret_cast<const char*>(value.data()), value.size()});
    TORCH_CHECK(status.ok(), status.ToString());
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    const absl::StatusOr<std::string> value = client_->Get(key);
    TORCH_CHECK(value.ok(), value.status().ToString());
    return {value->begin(), value->end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }
  std::int64_t add(const std::string&, std::int64_t) override { Unsupported(); }
  bool deleteKey(const std::string&) override { Unsupported(); }
  bool check(const std::vector<std::string>&) override { Unsupported(); }
  std::int64_t getNumKeys() override { Unsupported(); }

 private:
  [[noreturn]] static void Unsupported() {
    TORCH_CHECK(false, "Gloo asks the rendezvous for what it does not offer");
  }

  const std::shared_ptr<RendezvousClient> client_;
};

// Meets the other members; blocks until all are there, or the client is cancelled. Device and
// connections are made anew: those of an abandoned group may still be in use.
GlooGroup Meet(const GlooOptions& options, const GroupPlan& plan,
               const std::shared_ptr<RendezvousClient>& client) {
  auto group_options = c10d::ProcessGroupGloo::Options::create(kFormationLimit);
  group_options->threads = 1;
  group_options->devices.push_back(MakeDevice(options));
  auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<GlooTable>(client),
                                                           plan.rank, plan.size, group_options);
  group->setTimeout(kCollectiveLimit);
  return group;
}

class GlooCollectives final : public Collectives {
 public:
  GlooCollectives(GlooOptions options, std::unique_ptr<RendezvousServer> server)
      : options_(std::move(options)), server_(std::move(server)) {}

  ~GlooCollectives() override { LeaveGroup(); }

  std::string Address() const override { return server_->address(); }

  absl::Status Form(const GroupPlan& plan) override {
    ESPALIER_CHECK(plan.rank >= 0 && plan.rank < plan.size, "rank outside its group");
    LeaveGroup();
    begin_error_ = absl::OkStatus();
    plan_ = plan;
    if (plan.size == 1) return Abandoned() ? AbandonedStatus() : absl::OkStatus();
    auto completion = std::make_shared<Completion>();
    ESPALIER_ASSIGN_OR_RETURN(const std::shared_ptr<RendezvousClient> client,
                              RendezvousClient::Connect(plan.rendezvous, plan.generation));
    std::thread([bell = bell_, completion, plan, options = options_, client] {
      try {
        Complete(*bell, *completion, "", Meet(options, plan, client));
      } catch (const std::exception& e) {
        Complete(*bell, *completion, FirstLine(e));
      }
    }).detach();
    if (absl::Status met = Wait(*completion); !met.ok()) {
      client->Cancel();
      return met;
    }
    group_ = std::move(completion->group);
    return absl::OkStatus();
  }

  void StartAllReduceSum(const CollectiveBuffer& buffer) override {
    BeginTogether([&] {
      std::vector<at::Tensor> tensors{TensorOf(buffer)};
      return group_->allreduce(tensors);
    });
  }

  void StartBroadcast(const CollectiveBuffer& buffer, int root) override {
    BeginTogether([&] {
      std::vector<at::Tensor> tensors{TensorOf(buffer)};
      c10d::BroadcastOptions broadcast_options;
      broadcast_options.rootRank = root;
      return group_->broadcast(tensors, broadcast_options);
    });
  }

  void StartSend(const CollectiveBuffer& buffer, int to) override {
    BeginBetweenTwo([&] {
      std::vector<at::Tensor> tensors{TensorOf(buffer)};
      return group_->send(tensors, to, /*tag=*/0);
    });
  }

  void StartReceive(const CollectiveBuffer& buffer, int from) override {
    BeginBetweenTwo([&] {
      std::vector<at::Tensor> tensors{TensorOf(buffer)};
      return group_->recv(tensors, from, /*tag=*/0);
    });
  }

  absl::Status WaitAll() override {
    absl::Status status = std::exchange(begin_error_, absl::OkStatus());
    for (const std::shared_ptr<Completion>& completion : pending_) {
      if (!status.ok()) break;
      status = Wait(*completion);
    }
    pending_.clear();
    if (!status.ok()) LeaveGroup();
    between_two_.clear();
    return status;
  }

  absl::StatusOr<std::vector<std::vector<std::int64_t>>> AllGather(
      const std::vector<std::int64_t>& values) override {
    auto all = std::make_shared<std::vector<std::int64_t>>(values.size() *
                                                           static_cast<std::size_t>(plan_.size));
    // A sum in which each member fills its own part: the tables are small.
    std::copy(values.begin(), values.end(),
              all->begin() + static_cast<std::ptrdiff_t>(values.size()) * plan_.rank);
    ESPALIER_RETURN_IF_ERROR(AllReduceSum(CollectiveBuffer::Of(all)));
    std::vector<std::vector<std::int64_t>> by_rank;
    for (auto part = all->begin(); part != all->end() && !values.empty();) {
      const auto end = part + static_cast<std::ptrdiff_t>(values.size());
      by_rank.emplace_back(part, end);
      part = end;
    }
    return by_rank;
  }

  void Abandon(std::int64_t generation, double grace_s) override {
    {
      const std::lock_guard lock(bell_->mutex);
      if (grace_s <= 0) {
        bell_->abandoned_below = std::max(bell_->abandoned_below, generation);
      } else if (generation > bell_->fading_below) {
        bell_->fading_below = generation;
        bell_->fading_since = SteadyClock::now();
        bell_->grace = std::chrono::duration_cast<SteadyClock::duration>(
            std::chrono::duration<double>(grace_s));
      }
    }
    bell_->rung.notify_all();
  }

 private:
  bool Abandoned() const {
    const std::lock_guard lock(bell_->mutex);
    return bell_->abandoned_below > plan_.generation;
  }

  absl::Status AbandonedStatus() const {
    return absl::AbortedError(absl::StrCat("generation ", plan_.generation, " was abandoned"));
  }

  absl::Status Wait(Completion& completion) {
    const SteadyClock::time_point start = SteadyClock::now();
    std::unique_lock lock(bell_->mutex);
    while (!completion.done && bell_->abandoned_below <= plan_.generation) {
      if (bell_->fading_below <= plan_.generation) {
        bell_->rung.wait(lock);
        continue;
      }
      const auto deadline = std::max(start, bell_->fading_since) + bell_->grace;
      if (SteadyClock::now() >= deadline) break;
      bell_->rung.wait_until(lock, deadline);
    }
    // What is complete counts, even if the word came in the same moment: other members may have
    // acted on it.
    if (!completion.done) return AbandonedStatus();
    if (completion.error.empty()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("generation ", plan_.generation, ": ", completion.error));
  }

  using StartWork = std::function<c10::intrusive_ptr<c10d::Work>()>;

  // Starts the work, or keeps why it cannot be for WaitAll. Null: there is nothing to wait for.
  c10::intrusive_ptr<c10d::Work> Begin(const StartWork& start,
                                       const std::shared_ptr<Completion>& completion) {
    if (!begin_error_.ok()) return nullptr;
    if (Abandoned()) {
      begin_error_ = AbandonedStatus();
      return nullptr;
    }
    if (plan_.size == 1) return nullptr;
    ESPALIER_CHECK(group_, "collective called on a group that is lost or was never formed");
    pending_.push_back(completion);
    try {
      return Start(start);
    } catch (const std::exception& e) {
      Complete(*bell_, *completion, FirstLine(e));
      return nullptr;
    }
  }

  void BeginTogether(const StartWork& start) {
    auto completion = std::make_shared<Completion>();
    if (const auto work = Begin(start, completion)) {
      work->getFuture()->addCallback([bell = bell_, completion](c10::ivalue::Future& future) {
        Complete(*bell, *completion,
                 future.hasError() ? future.tryRetrieveErrorMessage() : std::string());
      });
    }
  }

  // Gloo's sends and receives tell nobody when they are done: somebody has to wait for each.
  void BeginBetweenTwo(const StartWork& start) {
    auto completion = std::make_shared<Completion>();
    const c10::intrusive_ptr<c10d::Work> work = Begin(start, completion);
    if (!work) return;
    between_two_.push_back(work);
    std::thread([bell = bell_, completion, work] {
      try {
        const bool done = work->wait();
        Complete(*bell, *completion, done ? "" : "given up");
      } catch (const std::exception& e) {
        Complete(*bell, *completion, FirstLine(e));
      }
    }).detach();
  }

  // LibTorch's record of collectives is one table for the whole process, entered without a lock.
  static c10::intrusive_ptr<c10d::Work> Start(
      const std::function<c10::intrusive_ptr<c10d::Work>()>& start) {
    static std::mutex record;
    const std::lock_guard lock(record);
    return start();
  }

  // Closing a group waits for what it still has under way, which may be for ever.
  void LeaveGroup() {
    if (group_) {
      std::thread([group = std::move(group_), works = std::move(between_two_)]() mutable {
        for (const auto& work : works) work->abort();  // wakes who waits for it
        group.reset();
      }).detach();
    }
    group_.reset();
    between_two_.clear();
    pending_.clear();
  }

  const GlooOptions options_;
  const std::unique_ptr<RendezvousServer> server_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  GroupPlan plan_;
  GlooGroup group_;

  // Begun since the last WaitAll.
  absl::Status begin_error_;
  std::vector<std::shared_ptr<Completion>> pending_;
  std::vector<c10::intrusive_ptr<c10d::Work>> between_two_;
};

// Gloo writes to sockets whose other end may be gone, which by default ends the process. (Programs
// in Python never see that: their interpreter ignores the signal.)
void IgnoreBrokenPipes() {
  struct sigaction present {};
  sigaction(SIGPIPE, nullptr, &present);
  if (present.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collectives>> MakeGlooCollectives(const GlooOptions& options) {
  IgnoreBrokenPipes();
  ESPALIER_ASSIGN_OR_RETURN(auto server, RendezvousServer::Listen(options.host));
  try {
    // A lost member is told to the caller; LibTorch need not print a stack for it.
    FLAGS_caffe2_log_level = std::max(FLAGS_caffe2_log_level, 2);
    MakeDevice(options);  // Fails here, and not at the first regroup, if the address is wrong.
    return std::make_unique<GlooCollectives>(options, std::move(server));
  } catch (const std::exception& e) {
    return absl::UnavailableError(absl::StrCat("Gloo cannot use host \"", options.host,
                                               "\" interface \"", options.interface,
                                               "\": ", FirstLine(e)));
  }
}

}  // namespace espalier
