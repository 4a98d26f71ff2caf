#include "trial_runner/collectives/gloo/gloo_collectives.h"

#include <ATen/core/ivalue.h>
#include <c10/util/Logging.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "trial_runner/collectives/bell.h"
#include "trial_runner/collectives/buffer_tensor.h"
#include "trial_runner/collectives/gloo/group_confirmation.h"
#include "trial_runner/collectives/rendezvous/group_sockets.h"
#include "trial_runner/collectives/rendezvous/listening_ports.h"
#include "trial_runner/collectives/rendezvous/rendezvous.h"

namespace espalier {
namespace {

using GlooGroup = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

// Ours end a wait first; Gloo's own are for what is left of a group that was given up.
constexpr double kGloosExtra_s = 60;
// For an operation whose connections were shut down to end.
constexpr double kRest_s = 5;

// One alone takes what is begun at once one after the other: 8 sums of 4 kB between two processes
// on two busy cores took four times as long (2026-11).
constexpr int kThreads = 2;

// A group that is prepared is worth waiting for as long as training goes on, but not for a member
// that never comes.
constexpr std::chrono::seconds kPreparation{2};

// The end of one asynchronous operation; changed with the bell's lock held.
struct Completion {
  bool done = false;
  std::string error;
  const void* start = nullptr;  // of the buffer
};

void Complete(Bell& bell, Completion& completion, std::string error) {
  bell.Ring([&] {
    completion.done = true;
    completion.error = std::move(error);
  });
}

std::chrono::milliseconds GloosLimit(double limit_s) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double>(limit_s + kGloosExtra_s));
}

// LibTorch's messages go on with a stack.
std::string FirstLine(const std::exception& e) {
  const std::string message = e.what();
  return message.substr(0, message.find('\n'));
}

// Its listener is made with it.
std::shared_ptr<::gloo::transport::Device> MakeDevice(const CollectivesOptions& options) {
  const ListeningPorts within(options.ports);
  auto device = c10d::ProcessGroupGloo::createDeviceForHostname(options.host);
  TORCH_CHECK(within.served(), "its listener cannot be kept to the ports ", options.ports.text(),
              ": this program's bind() is not Espalier's");
  return device;
}

// The rendezvous table as Gloo wants it. Gloo sets, waits for and gets keys; nothing else is used.
class GlooTable final : public c10d::Store {
 public:
  GlooTable(std::shared_ptr<RendezvousClient> client, std::shared_ptr<GroupSockets> sockets)
      : client_(std::move(client)), sockets_(std::move(sockets)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<GlooTable>(client_, sockets_);
  }
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    const std::string_view bytes(reinterpret_cast<const char*>(value.data()), value.size());
    sockets_->Note(bytes);
    const absl::Status status = client_->Set(key, bytes);
    TORCH_CHECK(status.ok(), status.ToString());
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    const absl::StatusOr<std::string> value = client_->Get(key);
    TORCH_CHECK(value.ok(), value.status().ToString());
    sockets_->Note(*value);
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
  const std::shared_ptr<GroupSockets> sockets_;
};

// A connection to the rendezvous that can be given up before it stands.
class CancellableClient {
 public:
  absl::StatusOr<std::shared_ptr<RendezvousClient>> Connect(const GroupPlan& plan) {
    ESPALIER_ASSIGN_OR_RETURN(
        const std::shared_ptr<RendezvousClient> client,
        RendezvousClient::Connect(plan.rendezvous, plan.generation, plan.secret, cancelled_));
    const std::lock_guard lock(mutex_);
    if (cancelled_) return absl::CancelledError("given up");
    client_ = client;
    return client;
  }
  void Cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (client_) client_->Cancel();
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> cancelled_{false};
  std::shared_ptr<RendezvousClient> client_;
};

// Meets the other members; blocks until all are there, or the client is cancelled. Device and
// connections are made anew: those of an abandoned group may still be in use.
GlooGroup Meet(const CollectivesOptions& options, const GroupPlan& plan,
               const c10::intrusive_ptr<GlooTable>& table) {
  auto group_options =
      c10d::ProcessGroupGloo::Options::create(GloosLimit(options.formation_limit_s));
  group_options->threads = kThreads;
  group_options->devices.push_back(MakeDevice(options));
  auto group =
      c10::make_intrusive<c10d::ProcessGroupGloo>(table, plan.rank, plan.size, group_options);
  group->setTimeout(GloosLimit(options.collective_limit_s));
  return group;
}

// Rings when the work has ended.
void Follow(c10d::Work& work, const std::shared_ptr<Bell>& bell,
            const std::shared_ptr<Completion>& completion) {
  work.getFuture()->addCallback([bell, completion](c10::ivalue::Future& future) {
    Complete(*bell, *completion,
             future.hasError() ? future.tryRetrieveErrorMessage() : std::string());
  });
}

// LibTorch's record of collectives is one table for the whole process, entered without a lock.
c10::intrusive_ptr<c10d::Work> StartOneByOne(
    const std::function<c10::intrusive_ptr<c10d::Work>()>& start) {
  static std::mutex record;
  const std::lock_guard lock(record);
  return start();
}

// Of as many bytes for each member, by rank: each tells each other its part, in one turn.
c10::intrusive_ptr<c10d::Work> StartExchange(c10d::ProcessGroupGloo& group,
                                             const CollectiveBuffer& said,
                                             const CollectiveBuffer& heard) {
  at::Tensor in = TensorOf(said);
  at::Tensor out = TensorOf(heard);
  std::vector<std::int64_t> equal_parts;
  return group.alltoall_base(out, in, equal_parts, equal_parts);
}

// A group on its way, on a thread of its own, which rings the bell at its end.
class Formation : public std::enable_shared_from_this<Formation> {
 public:
  Formation(GroupPlan plan, CollectivesOptions options)
      : plan_(std::move(plan)), options_(std::move(options)) {}

  const GroupPlan& plan() const { return plan_; }
  bool over() const { return over_; }
  Bell::Clock::time_point begin() const { return begin_; }
  const std::shared_ptr<GroupSockets>& sockets() const { return sockets_; }
  // Once it has ended well.
  GlooGroup TakeGroup() { return std::move(group_); }
  // Its end, for which the bell that it was started with is rung.
  const std::shared_ptr<Completion>& end() const { return end_; }

  void Start(const std::shared_ptr<Bell>& bell) {
    std::thread([self = shared_from_this(), bell] {
      std::string error;
      try {
        error = self->Run();
      } catch (const std::exception& e) {
        error = FirstLine(e);
      }
      self->over_ = true;
      Complete(*bell, *self->end_, std::move(error));
    }).detach();
  }

  // Ends what it waits for.
  void Cancel() {
    client_.Cancel();
    sockets_->ShutDown();
    confirming_->Abandon(plan_.generation + 1, 0);
  }

 private:
  // What went wrong.
  std::string Run() {
    const auto connected = client_.Connect(plan_);
    if (!connected.ok()) return std::string(connected.status().message());
    auto group = Meet(options_, plan_, c10::make_intrusive<GlooTable>(*connected, sockets_));
    std::string error = Confirm(*group);
    if (error.empty()) {
      sockets_->TurnNewcomersAway();
      group_ = std::move(group);
    }
    return error;
  }

  // Every two members confirm each other, all at once, over the connections that stand now and that
  // all operations use. Gloo takes whoever connects first and says the number that it expects.
  std::string Confirm(c10d::ProcessGroupGloo& group) {
    const auto said = std::make_shared<std::vector<std::uint8_t>>(ConfirmationsOf(plan_));
    const auto heard = std::make_shared<std::vector<std::uint8_t>>(said->size());
    const auto completion = std::make_shared<Completion>();
    const auto work = StartOneByOne([&] {
      return StartExchange(group, CollectiveBuffer::Of(said), CollectiveBuffer::Of(heard));
    });
    Follow(*work, confirming_, completion);
    absl::Status status = Await(*completion, options_.confirmation_limit_s);
    if (!status.ok()) {
      // What was heard is not looked at while somebody may write there.
      sockets_->ShutDown();
      if (!Await(*completion, kRest_s).ok()) return std::string(status.message());
    }
    if (status.ok() && !completion->error.empty()) {
      status = absl::UnavailableError(completion->error);
    }
    const std::string missing = Describe(FindUnconfirmed(plan_, *heard));
    if (missing.empty()) return std::string(status.message());
    return status.ok() ? missing : absl::StrCat(missing, " (", std::string(status.message()), ")");
  }

  absl::Status Await(const Completion& completion, double limit_s) {
    return confirming_->WaitFor({.generation = plan_.generation,
                                 .limit_s = limit_s,
                                 .done = [&] { return completion.done; },
                                 .poll_every = {}});
  }

  const GroupPlan plan_;
  const CollectivesOptions options_;
  const Bell::Clock::time_point begin_ = Bell::Clock::now();
  CancellableClient client_;
  const std::shared_ptr<GroupSockets> sockets_ = std::make_shared<GroupSockets>();
  const std::shared_ptr<Bell> confirming_ = std::make_shared<Bell>();
  const std::shared_ptr<Completion> end_ = std::make_shared<Completion>();
  std::atomic<bool> over_{false};
  GlooGroup group_;
};

class GlooCollectives final : public Collectives {
 public:
  // `tried` has shown that devices can be made. Its own thread looks every ten milliseconds whether
  // it is to end: nobody waits for that here.
  GlooCollectives(CollectivesOptions options, std::unique_ptr<RendezvousServer> server,
                  std::shared_ptr<::gloo::transport::Device> tried)
      : options_(std::move(options)),
        server_(std::move(server)),
        ending_([device = std::move(tried)]() mutable { device.reset(); }) {}

  ~GlooCollectives() override {
    if (formation_) GiveUp(std::move(formation_));
    LeaveGroup();
    ending_.join();
  }

  std::string Address() const override { return server_->address(); }

  void Expect(std::int64_t generation, const std::string& secret) override {
    server_->Expect(generation, secret);
  }

  void Prepare(const GroupPlan& plan) override {
    const std::lock_guard lock(mutex_);
    // The announcement of a group may come later than the group.
    if (plan.size > 1 && plan.generation > newest_) FormOnly(plan);
  }

  bool Prepared(std::int64_t generation) const override {
    const std::lock_guard lock(mutex_);
    return !formation_ || formation_->plan().generation != generation || formation_->over() ||
           Bell::Clock::now() > formation_->begin() + kPreparation;
  }

  absl::Status Form(const GroupPlan& plan) override {
    ESPALIER_CHECK(plan.rank >= 0 && plan.rank < plan.size, "rank outside its group");
    LeaveGroup();
    begin_error_ = absl::OkStatus();
    plan_ = plan;
    if (plan.rank == 0 && plan.size > 1) Expect(plan.generation, plan.secret);
    std::shared_ptr<Formation> formation;
    {
      const std::lock_guard lock(mutex_);
      newest_ = std::max(newest_, plan.generation);
      // Of a newer group the other members may be through with it: it goes on.
      const bool newer = formation_ && formation_->plan().generation > plan.generation;
      if (plan.size == 1) {
        if (formation_ && !newer) GiveUp(std::move(formation_));
        return Abandoned() ? AbandonedStatus() : absl::OkStatus();
      }
      if (newer) {
        formation = std::make_shared<Formation>(plan, options_);
        formation->Start(bell_);
      } else {
        FormOnly(plan);
        formation = formation_;
      }
    }
    const absl::Status formed = Wait(formation->end(), options_.formation_limit_s);
    {
      const std::lock_guard lock(mutex_);
      if (formation_ == formation) formation_.reset();
    }
    if (!formed.ok()) {
      GiveUp(formation);
      return formed;
    }
    group_ = formation->TakeGroup();
    sockets_ = formation->sockets();
    return absl::OkStatus();
  }

  void StartAllReduceSum(const CollectiveBuffer& buffer) override {
    const auto start = [&] {
      std::vector<at::Tensor> tensors{TensorOf(buffer)};
      return group_->allreduce(tensors);
    };
    BeginTogether(start, buffer.start);
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

  absl::Status WaitAll() override { return WaitAllInTurn(nullptr); }

  absl::Status WaitAllInTurn(const EachDone& each) override {
    absl::Status status = std::exchange(begin_error_, absl::OkStatus());
    while (status.ok() && !pending_.empty()) {
      const std::shared_ptr<Completion> completion = pending_.front();
      status = Wait(completion, options_.collective_limit_s);
      if (!status.ok()) break;
      pending_.pop_front();
      if (each) each(completion->start);
    }
    if (!status.ok()) LeaveGroup();
    between_two_.clear();
    return status;
  }

  absl::StatusOr<std::vector<std::vector<std::int64_t>>> AllGather(
      const std::vector<std::int64_t>& values) override {
    // The tables are small.
    const auto said = std::make_shared<std::vector<std::int64_t>>();
    for (int to = 0; to < plan_.size; ++to) said->insert(said->end(), values.begin(), values.end());
    const auto all = std::make_shared<std::vector<std::int64_t>>(*said);
    BeginTogether([&] {
      return StartExchange(*group_, CollectiveBuffer::Of(said), CollectiveBuffer::Of(all));
    });
    ESPALIER_RETURN_IF_ERROR(WaitAll());
    std::vector<std::vector<std::int64_t>> by_rank;
    for (auto part = all->begin(); part != all->end() && !values.empty();) {
      const auto end = part + static_cast<std::ptrdiff_t>(values.size());
      by_rank.emplace_back(part, end);
      part = end;
    }
    return by_rank;
  }

  void Abandon(std::int64_t generation, double grace_s) override {
    bell_->Abandon(generation, grace_s);
  }
  void SetLeastGrace(double grace_s) override { bell_->SetLeastGrace(grace_s); }

  double Waiting_s() const override { return bell_->Waiting_s(); }

 private:
  bool Abandoned() const { return bell_->Abandoned(plan_.generation); }
  absl::Status AbandonedStatus() const { return Bell::AbandonedStatus(plan_.generation); }

  absl::Status Wait(const std::shared_ptr<Completion>& completion, double limit_s) {
    ESPALIER_RETURN_IF_ERROR(bell_->WaitFor({.generation = plan_.generation,
                                             .limit_s = limit_s,
                                             .done = [&] { return completion->done; },
                                             .poll_every = {}}));
    if (completion->error.empty()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("generation ", plan_.generation, ": ", completion->error));
  }

  // Closing what it may have connected takes its time.
  static void GiveUp(std::shared_ptr<Formation> formation) {
    formation->Cancel();
    std::thread([formation = std::move(formation)]() mutable { formation.reset(); }).detach();
  }

  // The group that is being formed is the one of this plan from now on. With the lock held.
  void FormOnly(const GroupPlan& plan) {
    if (formation_ && formation_->plan() == plan) return;
    if (formation_) GiveUp(std::move(formation_));
    formation_ = std::make_shared<Formation>(plan, options_);
    formation_->Start(bell_);
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
      return StartOneByOne(start);
    } catch (const std::exception& e) {
      Complete(*bell_, *completion, FirstLine(e));
      return nullptr;
    }
  }

  void BeginTogether(const StartWork& start, const void* buffer = nullptr) {
    auto completion = std::make_shared<Completion>();
    completion->start = buffer;
    if (const auto work = Begin(start, completion)) Follow(*work, bell_, completion);
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

  // Closing a group waits for what it still has under way: that is ended first.
  void LeaveGroup() {
    if (group_) {
      std::thread([group = std::move(group_), works = std::move(between_two_),
                   broken = !pending_.empty() ? std::move(sockets_) : nullptr]() mutable {
        if (broken) broken->ShutDown();
        for (const auto& work : works) work->abort();  // wakes who waits for it
        works.clear();
        group.reset();
      }).detach();
    }
    group_.reset();
    sockets_.reset();
    between_two_.clear();
    pending_.clear();
  }

  const CollectivesOptions options_;
  const std::unique_ptr<RendezvousServer> server_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  GroupPlan plan_;
  GlooGroup group_;
  std::shared_ptr<GroupSockets> sockets_;  // the group's

  mutable std::mutex mutex_;
  std::int64_t newest_ = -1;              // generation that Form was asked for
  std::shared_ptr<Formation> formation_;  // of the next group

  // Begun since the last WaitAll.
  absl::Status begin_error_;
  std::deque<std::shared_ptr<Completion>> pending_;
  std::vector<c10::intrusive_ptr<c10d::Work>> between_two_;

  std::thread ending_;  // of the device that was tried
};

// Gloo writes to sockets whose other end may be gone, which by default ends the process. (Programs
// in Python never see that: their interpreter ignores the signal.)
void IgnoreBrokenPipes() {
  struct sigaction present {};
  sigaction(SIGPIPE, nullptr, &present);
  if (present.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collectives>> MakeGlooCollectives(
    const CollectivesOptions& options) {
  IgnoreBrokenPipes();
  ESPALIER_ASSIGN_OR_RETURN(auto server, RendezvousServer::Listen(options.host, options.ports));
  try {
    // A lost member is told to the caller; LibTorch need not print a stack for it.
    FLAGS_caffe2_log_level = std::max(FLAGS_caffe2_log_level, 3);
    // Fails here, and not at the first regroup, if the address is wrong.
    auto device = MakeDevice(options);
    return std::make_unique<GlooCollectives>(options, std::move(server), std::move(device));
  } catch (const std::exception& e) {
    return absl::UnavailableError(
        absl::StrCat("Gloo cannot use host \"", options.host, "\": ", FirstLine(e)));
  }
}

}  // namespace espalier
