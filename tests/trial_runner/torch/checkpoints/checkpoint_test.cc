// Training states in and out of checkpoint files, as one replica sees it.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <sys/resource.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/torch/libtorch_state.h"
#include "tests/trial_runner/torch/test_device.h"
#include "trial_runner/control/group_progress.h"
#include "trial_runner/torch/engine/training_state.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Keeps the steps of the checkpoints that it is told of, and can let the teller wait.
class Listener final : public ControlPlane {
 public:
  void Send(const ReplicaMessage& message) override {
    std::unique_lock lock(mutex_);
    if (const auto* saved = std::get_if<ReplicaCheckpoint>(&message)) {
      EXPECT_TRUE(fs::exists(saved->path));
      steps_.push_back(saved->step);
    }
    changed_.notify_all();
    changed_.wait(lock, [this] { return !closed_; });
  }
  std::int64_t LatestGeneration() const override { return 0; }
  Membership Latest() const override { return {}; }
  Membership WaitAbove(std::int64_t) override { return {}; }
  std::optional<Membership> WaitAboveFor(std::int64_t, double) override { return std::nullopt; }
  void Listen(std::function<void(const Membership&)>) override {}
  std::optional<Adopted> Park(std::int64_t) override { return std::nullopt; }
  GroupProgress& progress() override { return progress_; }

  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void Open() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = false;
    }
    changed_.notify_all();
  }
  void AwaitSteps(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return steps_.size() >= count; });
  }
  std::vector<std::int64_t> steps() {
    const std::lock_guard lock(mutex_);
    return steps_;
  }

 private:
  GroupProgress progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  std::vector<std::int64_t> steps_;
};

// A state that is what it was told.
class Words final : public State {
 public:
  explicit Words(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void Save(std::ostream& to) const override { to << words; }
  void Load(std::istream& from) override {
    words = std::string(std::istreambuf_iterator<char>(from), std::istreambuf_iterator<char>());
  }
  void Sync() override { ++syncs; }

  std::string words;
  int syncs = 0;

 private:
  const std::string name_;
};

// Not in the table of kinds.
class CheckpointedSgd final : public torch::optim::SGD {
 public:
  using SGD::SGD;
};

struct CheckpointedReplica {
  explicit CheckpointedReplica(const fs::path& folder, std::int64_t width = 3,
                               const std::string& name = "")
      : net(torch::nn::Linear(4, width), torch::nn::BatchNorm1d(width),
            torch::nn::Linear(width, 1)) {
    net->to(TestDevice());
    optimizer = std::make_unique<torch::optim::Adam>(net->parameters(), 0.1);
    trial.checkpoint_dir = folder.string();
    trial.control = std::make_unique<Listener>();
    trial.generation = 4;
    model_name = name;
  }
  TrainingState& Ready() {
    EXPECT_TRUE(parts.AddModel(model_name, *net, *optimizer).ok());
    return state;
  }

  void Train(int steps) {
    for (int i = 0; i < steps; ++i) {
      optimizer->zero_grad();
      const at::Tensor x = at::ones({8, 4}, TestDevice()) *
                           at::arange(8, TestDevice()).unsqueeze(1) * (0.1 * (i + 1));
      net->forward(x).pow(2).sum().backward();
      optimizer->step();
      ++state.position.step;
      trial.progress = ++state.position.progress;
    }
  }
  std::string Save() {
    state.SaveCheckpoint();
    state.AwaitCheckpoint();
    return trial.checkpoint_dir + "/step-" + std::to_string(state.position.step) + ".pt";
  }
  Listener& listener() { return static_cast<Listener&>(*trial.control); }

  TrialContext trial;
  torch::nn::Sequential net;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::string model_name;
  LibTorchState parts{trial};
  TrainingState& state = parts.state;
};

void ExpectEqualModels(const torch::nn::Sequential& a, const torch::nn::Sequential& b) {
  const auto of_b = b->named_parameters();
  for (const auto& p : a->named_parameters()) {
    EXPECT_TRUE(at::equal(p.value(), of_b[p.key()])) << p.key();
  }
  const auto buffers = b->named_buffers();
  for (const auto& p : a->named_buffers()) {
    EXPECT_TRUE(at::equal(p.value(), buffers[p.key()])) << p.key();
  }
}

class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "espalier-checkpoint-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  static void Damage(const std::string& path) {
    const auto middle = static_cast<std::streamoff>(fs::file_size(path) / 2);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(middle);
    const auto byte = static_cast<char>(file.get());
    file.seekp(middle);
    file.put(static_cast<char>(~byte));
  }
  static std::string ErrorOf(const absl::Status& status) {
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  }

  fs::path folder_;
};

// Also of a kind that is not in the table.
class EachCheckpointedOptimizer : public Checkpoint, public ::testing::WithParamInterface<int> {
 protected:
  static void Equip(CheckpointedReplica& replica) {
    const auto p = replica.net->parameters();
    const auto sgd = torch::optim::SGDOptions(0.01).momentum(0.9);
    if (GetParam() == 1) replica.optimizer = std::make_unique<torch::optim::SGD>(p, sgd);
    if (GetParam() == 2) replica.optimizer = std::make_unique<CheckpointedSgd>(p, sgd);
    if (GetParam() == 3) replica.optimizer = std::make_unique<torch::optim::Adagrad>(p);
  }
};

TEST_P(EachCheckpointedOptimizer, TrainingGoesOnAsItWouldHaveWithout) {
  CheckpointedReplica first(folder_);
  Equip(first);
  first.Ready();
  first.Train(3);
  const std::string path = first.Save();
  EXPECT_THAT(first.listener().steps(), ElementsAre(3));
  CheckpointedReplica second(folder_);
  Equip(second);
  const absl::Status loaded = second.Ready().LoadCheckpoint(path);
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(second.state.position.step, 3);
  first.Train(2);
  second.Train(2);
  ExpectEqualModels(first.net, second.net);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EachCheckpointedOptimizer, ::testing::Range(0, 4));

TEST_F(Checkpoint, HoldsTheMomentWhenItWasTakenAndNotWhenItIsWritten) {
  CheckpointedReplica replica(folder_);
  replica.Ready();
  replica.Train(1);
  replica.listener().Close();
  replica.state.SaveCheckpoint();
  replica.listener().AwaitSteps(1);  // the writer is held up
  replica.Train(1);
  std::vector<at::Tensor> then;
  for (const at::Tensor& p : replica.net->parameters()) then.push_back(p.detach().clone());
  replica.state.SaveCheckpoint();
  replica.Train(5);
  replica.listener().Open();
  replica.state.AwaitCheckpoint();
  CheckpointedReplica other(folder_);
  ASSERT_TRUE(other.Ready().LoadCheckpoint((folder_ / "step-2.pt").string()).ok());
  for (std::size_t i = 0; i < then.size(); ++i) {
    EXPECT_TRUE(at::equal(then[i], other.net->parameters()[i]));
  }
}

TEST_F(Checkpoint, NewerOneTakesThePlaceOfOneThatWaits) {
  CheckpointedReplica replica(folder_);
  replica.Ready();
  replica.Train(1);
  replica.listener().Close();
  replica.state.SaveCheckpoint();
  replica.listener().AwaitSteps(1);
  for (int i = 0; i < 3; ++i) {
    replica.Train(1);
    replica.state.SaveCheckpoint();
  }
  replica.listener().Open();
  replica.state.AwaitCheckpoint();
  EXPECT_THAT(replica.listener().steps(), ElementsAre(1, 4));
}

TEST_F(Checkpoint, LibTorchsOwnReaderFindsModelAndOptimizerInIt) {
  CheckpointedReplica replica(folder_);
  replica.Ready();
  replica.Train(2);
  torch::serialize::InputArchive archive;
  archive.load_from(replica.Save(), TestDevice());
  torch::serialize::InputArchive model;
  torch::serialize::InputArchive optimizer;
  archive.read("model", model);
  archive.read("optimizer", optimizer);
  CheckpointedReplica other(folder_);
  other.net->load(model);
  other.optimizer->load(optimizer);
  ExpectEqualModels(replica.net, other.net);
  replica.Train(1);
  other.Train(1);
  ExpectEqualModels(replica.net, other.net);
}

TEST_F(Checkpoint, SeveralModelsAndStatesHavePlacesOfTheirOwn) {
  Words schedule("schedule");
  Words empty("empty.one");
  CheckpointedReplica first(folder_, 3, "generator");
  CheckpointedReplica critic(folder_, 5);
  EXPECT_TRUE(first.trial.AddState(schedule).ok());
  EXPECT_TRUE(first.trial.AddState(empty).ok());
  first.Ready();
  ASSERT_TRUE(first.parts.AddModel("critic", *critic.net, *critic.optimizer).ok());
  first.Train(1);
  schedule.words = std::string("warm\0cold \xff", 11);
  const std::string path = first.Save();

  Words other_schedule("schedule");
  Words other_empty("empty.one");
  other_empty.words = "to go";
  CheckpointedReplica second(folder_, 3, "generator");
  CheckpointedReplica second_critic(folder_, 5);
  EXPECT_TRUE(second.trial.AddState(other_schedule).ok());
  EXPECT_TRUE(second.trial.AddState(other_empty).ok());
  second.Ready();
  ASSERT_TRUE(second.parts.AddModel("critic", *second_critic.net, *second_critic.optimizer).ok());
  const absl::Status loaded = second.state.LoadCheckpoint(path);
  ASSERT_TRUE(loaded.ok()) << loaded;
  ExpectEqualModels(first.net, second.net);
  ExpectEqualModels(critic.net, second_critic.net);
  EXPECT_EQ(other_schedule.words, schedule.words);
  EXPECT_EQ(other_empty.words, "");

  CheckpointedReplica alone(folder_, 3, "generator");
  EXPECT_THAT(ErrorOf(alone.Ready().LoadCheckpoint(path)),
              HasSubstr("it has model.critic, which this program has not"));
}

TEST_F(Checkpoint, NamesThatAreTakenOrNoNamesAreRefused) {
  CheckpointedReplica replica(folder_);
  replica.Ready();
  EXPECT_THAT(ErrorOf(replica.parts.AddModel("", *replica.net, *replica.optimizer)),
              HasSubstr("already a model named \"\""));
  Words words("words");
  Words bad("a b");
  EXPECT_TRUE(replica.trial.AddState(words).ok());
  EXPECT_THAT(ErrorOf(replica.trial.AddState(words)), HasSubstr("already a state named \"words\""));
  EXPECT_THAT(ErrorOf(replica.trial.AddState(bad)), HasSubstr("state \"a b\""));
}

TEST_F(Checkpoint, AnotherProgramsCheckpointIsRefusedByTheFirstMismatch) {
  CheckpointedReplica replica(folder_);
  replica.Ready();
  replica.Train(1);
  const std::string path = replica.Save();
  CheckpointedReplica wider(folder_, 7);
  EXPECT_THAT(ErrorOf(wider.Ready().LoadCheckpoint(path)),
              HasSubstr(path + ": its model.0.weight is Float [3, 4] and Float [7, 4] in this "
                               "program's model"));
  CheckpointedReplica longer(folder_);
  longer.net->push_back(torch::nn::Linear(1, 1));
  EXPECT_THAT(ErrorOf(longer.Ready().LoadCheckpoint(path)),
              HasSubstr("it has no model.3, which this program's model has"));
  CheckpointedReplica renamed(folder_, 3, "other");
  EXPECT_THAT(ErrorOf(renamed.Ready().LoadCheckpoint(path)), HasSubstr("it has no model.other"));
  CheckpointedReplica stepped(folder_);
  stepped.optimizer = std::make_unique<torch::optim::SGD>(stepped.net->parameters(), 0.1);
  EXPECT_THAT(ErrorOf(stepped.Ready().LoadCheckpoint(path)), HasSubstr("its optimizer does not"));
  Words words("words");
  CheckpointedReplica wordy(folder_);
  EXPECT_TRUE(wordy.trial.AddState(words).ok());
  EXPECT_THAT(ErrorOf(wordy.Ready().LoadCheckpoint(path)), HasSubstr("it has no state.words"));
}

TEST_F(Checkpoint, ADamagedOneIsRefusedAndNoneTakesItsPlace) {
  CheckpointedReplica replica(folder_);
  replica.Ready();
  replica.Train(1);
  replica.Save();
  replica.Train(1);
  const std::string newest = replica.Save();
  Damage(newest);
  CheckpointedReplica other(folder_);
  other.trial.checkpoint = newest;
  EXPECT_THAT(ErrorOf(other.Ready().LoadCheckpoint(newest)), HasSubstr(newest + ": is damaged"));
  EXPECT_THAT(ErrorOf(other.state.CatchUp()), HasSubstr("is damaged"));
  EXPECT_THAT(ErrorOf(other.state.Restore()), HasSubstr("is damaged"));
  fs::remove(newest);
  EXPECT_THAT(ErrorOf(other.state.CatchUp()), HasSubstr(newest));
  EXPECT_EQ(other.state.position.step, 0) << "there is an older one, which nobody named";
}

TEST_F(Checkpoint, FullDiskIsSaidOnceAndTrainingGoesOn) {
  CheckpointedReplica replica(folder_);
  replica.Ready();
  replica.Train(1);
  replica.Save();
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 4096;  // bytes a file
  const auto former = std::signal(SIGXFSZ, SIG_IGN);
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 3; ++i) {
    replica.Train(1);
    replica.Save();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, former);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("step-2.pt"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_THAT(replica.listener().steps(), ElementsAre(1));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  EXPECT_TRUE(replica.state.LoadCheckpoint((folder_ / "step-1.pt").string()).ok());
  replica.Train(1);
  replica.Save();
  EXPECT_THAT(replica.listener().steps(), ElementsAre(1, 2));
}

TEST_F(Checkpoint, SpoiledStateIsRestoredFromIt) {
  CheckpointedReplica replica(folder_);
  replica.Ready();
  EXPECT_THAT(ErrorOf(replica.state.Restore()), HasSubstr("no checkpoint"));
  replica.Train(2);
  const std::string path = replica.Save();
  CheckpointedReplica joiner(folder_);
  joiner.trial.checkpoint = path;
  ASSERT_TRUE(joiner.Ready().Expect(*replica.state.Offer()->description).ok());
  joiner.state.Forsake();
  EXPECT_EQ(joiner.state.Order().front(), SharedState::kSpoiled);
  ASSERT_TRUE(joiner.state.Restore().ok());
  EXPECT_EQ(joiner.state.Order(), replica.state.Order());
  ExpectEqualModels(replica.net, joiner.net);
}

TEST_F(Checkpoint, SpoiledStateIsNotSaved) {
  CheckpointedReplica replica(folder_);
  replica.Ready();
  replica.Train(2);
  replica.trial.checkpoint = replica.Save();
  const std::vector<std::int64_t> told = replica.listener().steps();
  CheckpointedReplica trained(folder_ / "other");
  ASSERT_TRUE(replica.state.Expect(*trained.Ready().Offer()->description).ok());
  replica.state.Forsake();
  replica.Save();
  EXPECT_EQ(replica.listener().steps(), told);
  // A state of the same step that is of no use is not taken for the one that was saved.
  ASSERT_TRUE(replica.state.CatchUp().ok());
  EXPECT_EQ(replica.state.Order().front(), SharedState::kTrained);
}

// In programs that report now and then, and where a trial is paused within an epoch.
TEST_F(Checkpoint, TheBestIsTheOneWhoseStateHadTheValue) {
  CheckpointedReplica replica(folder_);
  replica.trial.better_value = BetterValue::kLarger;
  replica.Ready();
  const auto report = [&](double value) {
    ReplicaReport told;
    told.value = value;
    replica.trial.Report(told);
  };
  const auto steps = [&] {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(folder_))
      names.push_back(file.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  };
  replica.Train(1);
  report(0.5);
  replica.Save();
  replica.Train(1);
  report(0.9);
  replica.Save();
  for (int epoch = 0; epoch < 3; ++epoch) {
    replica.Train(1);
    replica.Save();
  }
  EXPECT_THAT(steps(), ElementsAre("step-2.pt", "step-4.pt", "step-5.pt"));
  replica.Train(1);
  report(0.8);
  replica.Train(1);
  replica.Save();
  EXPECT_THAT(steps(), ElementsAre("step-2.pt", "step-5.pt", "step-7.pt"));
}

// A trial whose program builds its optimizer with these.
struct WithParameters : CheckpointedReplica {
  WithParameters(const fs::path& folder, const std::string& rate,
                 const torch::optim::SGDOptions& options)
      : CheckpointedReplica(folder) {
    EXPECT_TRUE(trial.parameters.Set("lr=" + rate).ok());
    optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), options);
  }
  torch::optim::SGDOptions& options() {
    return static_cast<torch::optim::SGDOptions&>(optimizer->param_groups()[0].options());
  }
};

TEST_F(Checkpoint, OfATrialWithOtherParametersLeavesTheProgramItsOptions) {
  const auto sgd = [](double rate) { return torch::optim::SGDOptions(rate).momentum(0.9); };
  WithParameters parent(folder_, "0.1", sgd(0.1));
  parent.Ready();
  parent.Train(2);
  parent.options().lr(0.05);  // by a schedule
  parent.options().momentum(0.8);
  const std::string path = parent.Save();

  WithParameters clone(folder_, "0.02", sgd(0.02).weight_decay(0.1));
  ASSERT_TRUE(clone.Ready().LoadCheckpoint(path).ok());
  EXPECT_DOUBLE_EQ(clone.options().lr(), 0.01) << "the schedule has halved it";
  EXPECT_DOUBLE_EQ(clone.options().momentum(), 0.8) << "both were built with the same one";
  EXPECT_DOUBLE_EQ(clone.options().weight_decay(), 0.1);
  ExpectEqualModels(parent.net, clone.net);
  EXPECT_EQ(clone.state.position.step, 2);

  // What it saves is its own.
  const std::string own = clone.Save();
  WithParameters again(folder_, "0.02", sgd(0.02).weight_decay(0.1));
  ASSERT_TRUE(again.Ready().LoadCheckpoint(own).ok());
  EXPECT_DOUBLE_EQ(again.options().lr(), 0.01);

  // The same trial goes on as it was, whatever its program has been changed to.
  WithParameters same(folder_, "0.02", sgd(0.5));
  ASSERT_TRUE(same.Ready().LoadCheckpoint(own).ok());
  EXPECT_DOUBLE_EQ(same.options().lr(), 0.01);
}

TEST_F(Checkpoint, OfATrialWithOtherParametersIsRefusedWhereOptionsAreNotKnown) {
  WithParameters parent(folder_, "0.1", torch::optim::SGDOptions(0.1));
  parent.optimizer = std::make_unique<CheckpointedSgd>(parent.net->parameters(), 0.1);
  parent.Ready();
  const std::string path = parent.Save();
  WithParameters clone(folder_, "0.02", torch::optim::SGDOptions(0.02));
  clone.optimizer = std::make_unique<CheckpointedSgd>(clone.net->parameters(), 0.02);
  EXPECT_THAT(ErrorOf(clone.Ready().LoadCheckpoint(path)),
              HasSubstr("options of its optimizer are not known by number"));
}

TEST_F(Checkpoint, SyncReachesEachState) {
  Words words("words");
  CheckpointedReplica replica(folder_);
  EXPECT_TRUE(replica.trial.AddState(words).ok());
  replica.Ready().SyncStates();
  EXPECT_EQ(words.syncs, 1);
}

}  // namespace
}  // namespace espalier
