// An agent that fetches checkpoints, gives its own away and keeps copies.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/checkpoint_seal.h"
#include "base/checksum.h"
#include "tests/trial_runner/agent/agent_fixture.h"
#include "trial_runner/agent/checkpoints/checkpoint_fetch.h"
#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"
#include "trial_runner/agent/checkpoints/checkpoint_server.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Beside the agent another node that has a checkpoint of the trial.
class KeepingTest : public AgentTest {
 protected:
  KeepingTest() {
    fs::create_directories(other_);
    server_ = *CheckpointServer::Open("127.0.0.1", 0, 0,
                                      [this](const CheckpointName&) { return other_.string(); });
    server_->Allow("ticket", {"mnist", 2, "step-7.pt"});
    std::ofstream(other_ / "step-7.pt") << "learnt";
    fingerprint_ = ReadManifest(other_.string(), "step-7.pt")->fingerprint;
  }

  fs::path Own(const std::string& name) const {
    return fs::path(Path("agent")) / "mnist" / "trial-2" / "checkpoints" / name;
  }
  void Fill(v1::CheckpointSources& from) const {
    from.set_name("step-7.pt");
    from.set_fingerprint(fingerprint_);
    from.set_step(7);
    v1::CheckpointSource& source = *from.add_sources();
    source.set_node("other");
    source.set_address(server_->address());
    source.set_certificate(server_->certificate());
    source.set_ticket("ticket");
  }
  // Once there is an agent.
  void CopyHere() {
    fs::create_directories(Own("").parent_path());
    fs::copy_file(other_ / "step-7.pt", Own("step-7.pt"));
  }
  // A program that writes what it was given to "seen".
  void StartWhereNobodyElseHasIt() {
    server_.reset();
    v1::StartReplica start = Shell(1, "cat $ESPALIER_CHECKPOINT > seen");
    start.mutable_from()->set_name("step-7.pt");
    start.mutable_from()->set_fingerprint(fingerprint_);
    service_.Start(start);
    EXPECT_EQ(service_.AwaitExit(1).exit_code(), 0);
  }
  // Of the checkpoint that trial 2 has here, for trial 3.
  void OrderClone() {
    v1::ServiceMessage message;
    v1::CopyCheckpoint& copy = *message.mutable_copy();
    copy.set_trial_id(32);
    copy.set_study("mnist");
    copy.set_study_identity("2-200");
    copy.set_trial_number(3);
    copy.set_of_trial(2);
    Fill(*copy.mutable_from());
    copy.mutable_from()->clear_sources();
    service_.Send(message);
  }
  fs::path OfClone(const std::string& name) const {
    return fs::path(Path("agent")) / "mnist" / "trial-3" / "checkpoints" / name;
  }
  void OrderCopy() {
    v1::ServiceMessage message;
    v1::CopyCheckpoint& copy = *message.mutable_copy();
    copy.set_trial_id(31);
    copy.set_study("mnist");
    copy.set_study_identity("2-200");
    copy.set_trial_number(2);
    Fill(*copy.mutable_from());
    service_.Send(message);
  }
  v1::CheckpointCopied AwaitCopied() {
    v1::CheckpointCopied copied;
    EXPECT_TRUE(service_.Await([&](const ScriptedService::Events& events) {
      for (const v1::AgentMessage& event : events) {
        if (event.has_copied()) copied = event.copied();
      }
      return copied.trial_id() != 0;
    }));
    return copied;
  }
  // Once what was sent before is done.
  void AwaitTurn() {
    v1::StartReplica of_another_trial = Shell(++turn_, "exit 0");
    of_another_trial.set_trial_number(9);
    service_.Start(of_another_trial);
    service_.AwaitExit(turn_);
  }

  fs::path other_ = folder_ / "other";
  std::unique_ptr<CheckpointServer> server_;
  std::string fingerprint_;
  std::int64_t turn_ = 90;
};

TEST_F(KeepingTest, FetchesTheCheckpointBeforeItStartsTheReplica) {
  StartAgent();
  v1::StartReplica start =
      Shell(1, "cat $ESPALIER_CHECKPOINT > seen; echo $ESPALIER_CHECKPOINT > path");
  start.set_checkpoint("/elsewhere/step-7.pt");
  Fill(*start.mutable_from());
  service_.Start(start);
  EXPECT_EQ(service_.AwaitExit(1).exit_code(), 0);
  EXPECT_EQ(ReadFile("seen"), "learnt");
  EXPECT_EQ(ReadFile("path"), Own("step-7.pt").string() + "\n");
  const v1::CheckpointCopied copied = AwaitCopied();
  EXPECT_EQ(copied.fingerprint(), fingerprint_);
  EXPECT_EQ(copied.step(), 7);
  EXPECT_EQ(copied.bytes(), 6);
}

TEST_F(KeepingTest, WhatIsHereIsNotFetched) {
  StartAgent();
  CopyHere();
  StartWhereNobodyElseHasIt();
  EXPECT_EQ(ReadFile("seen"), "learnt");
}

// A checkpoint as trials write them, with a checksum, which is here and damaged.
class DamagedHere : public KeepingTest {
 protected:
  DamagedHere() {
    const std::string text(10'000, 'x');
    Checksum checksum;
    checksum.Add(text.data(), text.size());
    std::ofstream(other_ / "step-7.pt") << text << TextOf(CheckpointSeal{0, checksum.value(), 1});
    fingerprint_ = ReadManifest(other_.string(), "step-7.pt")->fingerprint;
  }
  // Once there is an agent.
  void Damage() {
    CopyHere();
    std::fstream(Own("step-7.pt"), std::ios::in | std::ios::out | std::ios::binary).put('y');
    ASSERT_EQ(ReadManifest(Own("").parent_path().string(), "step-7.pt")->fingerprint, fingerprint_);
  }
};

TEST_F(DamagedHere, IsFetchedFromAnotherNodeAndSetAside) {
  StartAgent();
  Damage();
  v1::StartReplica start = Shell(1, "cat $ESPALIER_CHECKPOINT > seen");
  Fill(*start.mutable_from());
  service_.Start(start);
  EXPECT_EQ(service_.AwaitExit(1).exit_code(), 0);
  EXPECT_EQ(ReadFile("seen"), ReadFile("other/step-7.pt"));
  EXPECT_TRUE(fs::exists(Own("step-7.pt.damaged")));
  EXPECT_EQ(AwaitCopied().error(), "");
}

TEST_F(DamagedHere, AndNowhereElseIsAnErrorOfTheStart) {
  StartAgent();
  Damage();
  fs::remove(other_ / "step-7.pt");
  v1::StartReplica start = Shell(1, "echo ran > ran");
  Fill(*start.mutable_from());
  service_.Start(start);
  const v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_TRUE(exited.checkpoint_missing());
  EXPECT_TRUE(exited.checkpoint_gone());
  EXPECT_THAT(exited.error(), HasSubstr("its own copy is damaged: its checksum is "));
  EXPECT_THAT(exited.error(), HasSubstr("set aside as " + Own("step-7.pt").string() + ".damaged"));
  EXPECT_THAT(exited.error(), HasSubstr("node other at 127.0.0.1:"));
  EXPECT_FALSE(fs::exists(folder_ / "ran"));
}

TEST_F(DamagedHere, WhatIsSoundIsCheckedAndNotSaidToHaveCome) {
  StartAgent();
  CopyHere();
  StartWhereNobodyElseHasIt();
  EXPECT_EQ(ReadFile("seen"), ReadFile("other/step-7.pt"));
  for (const v1::AgentMessage& event : service_.events()) EXPECT_FALSE(event.has_copied());
}

TEST_F(KeepingTest, AStartWhoseCheckpointCannotBeHadFailsWithWhatEachNodeSaid) {
  StartAgent();
  v1::StartReplica start = Shell(1, "echo ran > ran");
  Fill(*start.mutable_from());
  v1::CheckpointSource& away = *start.mutable_from()->add_sources();
  away.set_node("third");
  away.set_error("its agent is not connected");
  fs::remove(other_ / "step-7.pt");
  service_.Start(start);
  const v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_TRUE(exited.checkpoint_missing());
  EXPECT_FALSE(exited.checkpoint_gone()) << "who is not connected may have it";
  EXPECT_THAT(exited.error(), HasSubstr("checkpoint step-7.pt of trial 2 in study mnist"));
  EXPECT_THAT(exited.error(), HasSubstr("node other at 127.0.0.1:"));
  EXPECT_THAT(exited.error(), HasSubstr("node third: its agent is not connected"));
  EXPECT_FALSE(fs::exists(folder_ / "ran"));
}

TEST_F(KeepingTest, AReplicaThatIsStoppedWhileItsCheckpointComesNeverRuns) {
  StartAgent();
  v1::StartReplica start = Shell(1, "echo ran > ran");
  Fill(*start.mutable_from());
  start.mutable_from()->mutable_sources(0)->set_ticket("wrong");  // tried again for a while
  service_.Start(start);
  service_.Stop(1, 0);
  const v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_FALSE(exited.checkpoint_missing());
  EXPECT_EQ(exited.error(), "");
  EXPECT_FALSE(fs::exists(folder_ / "ran"));
}

TEST_F(KeepingTest, KeepsACopyTellsOfItAndDropsIt) {
  StartAgent();
  OrderCopy();
  EXPECT_EQ(AwaitCopied().error(), "");
  EXPECT_TRUE(fs::exists(Own("step-7.pt")));
  service_.Close();
  service_.Open();
  ASSERT_TRUE(agent_->WaitConnected(60));
  AwaitTurn();
  const v1::Hello hello = service_.hellos().back();
  ASSERT_EQ(hello.checkpoints().checkpoints_size(), 1);
  EXPECT_EQ(hello.checkpoints().checkpoints(0).study(), "mnist");
  EXPECT_EQ(hello.checkpoints().checkpoints(0).trial_number(), 2);
  EXPECT_EQ(hello.checkpoints().checkpoints(0).fingerprint(), fingerprint_);
  EXPECT_TRUE(hello.checkpoints().checkpoints(0).fetched());
  v1::ServiceMessage drop;
  drop.mutable_drop()->set_study("mnist");
  drop.mutable_drop()->set_trial_number(2);
  service_.Send(drop);
  AwaitTurn();
  EXPECT_FALSE(fs::exists(Own("").parent_path().parent_path())) << "nothing is left";
}

TEST_F(KeepingTest, ACopyIsNotPutAmongTheFilesOfAnotherStudyOfThatName) {
  StartAgent();
  v1::StartReplica earlier = Shell(1, "touch $ESPALIER_CHECKPOINT_DIR/step-3.pt");
  earlier.set_study_identity("1-100");
  service_.Start(earlier);
  service_.AwaitExit(1);
  OrderCopy();
  EXPECT_EQ(AwaitCopied().error(), "");
  EXPECT_TRUE(fs::exists(Own("step-7.pt")));
  EXPECT_FALSE(fs::exists(Own("step-3.pt")));
  v1::StartReplica start = Shell(2, "cat $ESPALIER_CHECKPOINT; ls $ESPALIER_CHECKPOINT_DIR");
  start.set_study_identity("2-200");
  Fill(*start.mutable_from());
  service_.Start(start);
  EXPECT_EQ(service_.AwaitExit(2).last_output(), "learntstep-7.pt\n");
}

TEST_F(KeepingTest, ACloneIsGivenACopyOfWhatItsParentHasHere) {
  StartAgent();
  EXPECT_TRUE(service_.hellos().back().clones());
  CopyHere();
  OrderClone();
  const v1::CheckpointCopied copied = AwaitCopied();
  EXPECT_EQ(copied.error(), "");
  EXPECT_EQ(copied.trial_id(), 32);
  EXPECT_EQ(copied.fingerprint(), fingerprint_);
  EXPECT_EQ(copied.step(), 7);
  EXPECT_EQ(copied.path(), OfClone("step-7.pt").string());
  EXPECT_EQ(ReadManifest(OfClone("").string(), "step-7.pt")->fingerprint, fingerprint_);
  EXPECT_TRUE(fs::exists(Own("step-7.pt")));
  std::ofstream(Own("step-7.pt")) << "forgotten";
  EXPECT_EQ(fs::file_size(OfClone("step-7.pt")), 6U) << "it is the clone's own";
}

TEST_F(KeepingTest, ACloneWhoseParentHasItNoMoreIsTold) {
  StartAgent();
  OrderClone();
  EXPECT_EQ(AwaitCopied().error(),
            "checkpoint step-7.pt of trial 2 in study mnist is there no more");
  EXPECT_FALSE(fs::exists(OfClone("step-7.pt")));
}

TEST_F(KeepingTest, WhatTheTrialWroteHereIsNotDropped) {
  StartAgent();
  OrderCopy();
  AwaitCopied();
  fs::create_directories(Own("").parent_path());
  std::ofstream(Own("step-3.pt")) << "the best";
  v1::ServiceMessage drop;
  drop.mutable_drop()->set_study("mnist");
  drop.mutable_drop()->set_trial_number(2);
  service_.Send(drop);
  AwaitTurn();
  EXPECT_FALSE(fs::exists(Own("step-7.pt")));
  EXPECT_TRUE(fs::exists(Own("step-3.pt")));
}

TEST_F(KeepingTest, TellsWhatOthersNeedToKnowAndGivesItAway) {
  StartAgent();
  v1::ReplicaMessage saved;
  saved.mutable_checkpoint()->set_path(Own("step-9.pt").string());
  saved.mutable_checkpoint()->set_step(9);
  WriteFrame("saved", saved);
  service_.Start(Shell(1, "echo more > $ESPALIER_CHECKPOINT_DIR/step-9.pt; cat saved >&3"));
  ASSERT_TRUE(AwaitMessage(1));
  v1::CheckpointSaved told;
  for (const v1::AgentMessage& event : service_.events()) {
    if (event.has_from_replica()) told = event.from_replica().message().checkpoint();
  }
  EXPECT_EQ(told.name(), "step-9.pt");
  ASSERT_FALSE(told.fingerprint().empty());
  const v1::CheckpointServerOpen checkpoint_server = service_.AwaitCheckpointServer();
  v1::ServiceMessage allow;
  allow.mutable_allow_read()->set_ticket("mine");
  allow.mutable_allow_read()->set_study("mnist");
  allow.mutable_allow_read()->set_trial_number(2);
  allow.mutable_allow_read()->set_name("step-9.pt");
  service_.Send(allow);
  AwaitTurn();
  const FetchOrder order{
      31,
      {"mnist", 2, "step-9.pt"},
      told.fingerprint(),
      {{"node-a", checkpoint_server.address(), checkpoint_server.certificate(), "mine", ""}}};
  const absl::Status fetched = FetchCheckpoint(
      order, (folder_ / "mine").string(), {}, [](double) { return false; },
      [](std::int64_t) { return true; });
  EXPECT_TRUE(fetched.ok()) << fetched;
  EXPECT_EQ(ReadFile("mine/step-9.pt"), "more\n");
}

TEST_F(KeepingTest, ASharedFolderIsWhereCheckpointsGo) {
  AgentOptions options = Options();
  options.shared_directory = Path("common");
  auto agent = Agent::Start(options);
  ASSERT_TRUE(agent.ok()) << agent.status();
  agent_ = *std::move(agent);
  service_.Start(Shell(1, "echo more > $ESPALIER_CHECKPOINT_DIR/step-9.pt"));
  service_.AwaitExit(1);
  EXPECT_EQ(ReadFile("common/mnist/trial-2/checkpoints/step-9.pt"), "more\n");
  EXPECT_FALSE(service_.hellos().back().shared_folder().empty());
  EXPECT_EQ(service_.hellos().back().checkpoints().checkpoints_size(), 0);
}

TEST_F(KeepingTest, AFolderThatCannotBeWrittenToIsRefusedAtOnce) {
  WriteFile("file", "in the way");
  AgentOptions options = Options();
  options.shared_directory = Path("file");
  const auto agent = Agent::Start(options);
  EXPECT_THAT(std::string(agent.status().message()),
              HasSubstr("it should be a folder that the agents of all machines can write to"));
}

}  // namespace
}  // namespace espalier
