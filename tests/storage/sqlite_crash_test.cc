// A process that is killed in the middle of commits loses nothing that it acknowledged.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/storage/change_source.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/storage/storage.h"

namespace espalier {
namespace {

constexpr TrialId kTrial(1);
constexpr int kKills = 12;

// Two values and a decision a commit, so that half a commit would show.
std::vector<Change> Batch(std::int64_t step) {
  return {ValueReported{kTrial, {2 * step, 0.5, 0, Time{step}, 0}},
          DecisionMade{StudyId(1), {Time{step}, 0, DecisionKind::kGrow, 1, 2, "grew"}},
          ValueReported{kTrial, {2 * step + 1, 0.5, 0, Time{step}, 0}}};
}

// The child: commits from `step` on for ever, and writes each step to the pipe once it is durable.
[[noreturn]] void CommitUntilKilled(const std::string& database, std::int64_t step, int pipe) {
  const absl::StatusOr<std::unique_ptr<Storage>> storage = OpenSqliteStorage(database);
  if (!storage.ok()) _exit(1);
  for (;; ++step) {
    if (!(*storage)->Commit(Batch(step)).ok()) _exit(2);
    if (write(pipe, &step, sizeof step) != sizeof step) _exit(3);
  }
}

// The last step that the child acknowledged: it is killed after `acknowledgements` of them, and
// whatever it still wrote by then counts too.
std::int64_t RunAndKill(const std::string& database, std::int64_t first, int acknowledgements) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) CommitUntilKilled(database, first, ends[1]);
  close(ends[1]);
  std::int64_t acknowledged = 0;
  std::int64_t last = first - 1;
  for (int i = 0; read(ends[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged; ++i) {
    last = acknowledged;
    if (i + 1 == acknowledgements) kill(child, SIGKILL);
  }
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << WEXITSTATUS(status);
  return last;
}

TEST(SqliteCrash, KeepsWhatAKilledProcessAcknowledged) {
  const ScratchFolder folder;
  const std::string database = folder.File("tuner.db");
  {
    const absl::StatusOr<std::unique_ptr<Storage>> storage = OpenSqliteStorage(database);
    ASSERT_TRUE(storage.ok()) << storage.status();
    const std::vector<Change> begin = {StudyCreated{StudyId(1), SpecForTests("s"), Time{1}},
                                       TrialCreated{kTrial, StudyId(1), 0, {}, Time{1}}};
    ASSERT_TRUE((*storage)->Commit(begin).ok());
  }
  Random random(5);
  std::int64_t next = 1;
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    SCOPED_TRACE(kill_number);
    const int acknowledgements = 1 + static_cast<int>(random.Below(40));
    const std::int64_t last = RunAndKill(database, next, acknowledgements);
    ASSERT_GE(last, next + acknowledgements - 1);

    // The lock went with the process: a new service opens the file at once.
    const absl::StatusOr<std::unique_ptr<Storage>> storage = OpenSqliteStorage(database);
    ASSERT_TRUE(storage.ok()) << storage.status();
    const absl::StatusOr<TunerState> state = (*storage)->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    const std::vector<IntermediateValue>& values = state->trials.at(kTrial).values;
    const auto commits = std::ssize(values) / 2;
    EXPECT_GE(commits, last) << "an acknowledged commit is lost";
    EXPECT_LE(commits, last + 1) << "at most the commit under way when the kill came";
    EXPECT_EQ(std::ssize(values) % 2, 0) << "half a commit";
    EXPECT_EQ(std::ssize(state->studies.at(StudyId(1)).decisions), commits) << "half a commit";
    ASSERT_EQ(values.back().step, 2 * commits + 1);
    next = commits + 1;
  }
}

}  // namespace
}  // namespace espalier
