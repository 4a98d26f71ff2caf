// A process that is forked while other threads compute digests computes its own.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tuner/credentials/hexadecimal.h"

namespace espalier {
namespace {

// Before there were turns, one of the first twenty stopped for ever.
constexpr int kForks = 200;
constexpr int kThreads = 2;
constexpr unsigned kPatience_s = 60;

TEST(ForkedDigest, IsComputedWhateverTheParentsThreadsDo) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&done] {
      while (!done) {
        HashOf("text");
        KeyedHash("key", "text");
        RandomBytes(16);
      }
    });
  }
  int ended_well = 0;
  for (int i = 0; i < kForks && ended_well == i; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kPatience_s);
      _exit(KeyedHash("key", HashOf("text")).size() == RandomHexadecimal(32).size() ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ended_well += static_cast<int>(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended_well, kForks);
}

}  // namespace
}  // namespace espalier
