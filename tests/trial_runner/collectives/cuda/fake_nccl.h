#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "trial_runner/collectives/cuda/communicator_stream.h"
#include "trial_runner/collectives/cuda/nccl_api.h"

namespace espalier {

// NCCL 2.28 between the threads of one process, without GPUs, in its non-blocking mode and no
// kinder than it is: calls return before they are done; the communicator's address is stored a
// second time when joining ends; who waits for a rank that never comes waits for ever; an operation
// whose peers are gone holds its stream until the communicator is aborted. What the manual forbids
// ends the process with its reason: operations on a communicator that is in progress, in error or
// aborted, a second abort, blocking mode.
class FakeNccl {
 public:
  // How often a rank asks until what it has begun is over, where it waits for nobody.
  static constexpr int kPolls = 3;

  FakeNccl();  // one at a time
  ~FakeNccl();
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  const NcclApi& api() const;
  // A stream of its own for a communicator. What comes before its operations is done already.
  static std::unique_ptr<CommunicatorStream> MakeStream();
  // Work for the calling thread's current stream: done at once, unless a communicator's stream
  // leads it.
  static void GiveCurrentStream(std::function<void()> work);
  // Whether that stream comes after a communicator's which may still be at work.
  static bool CurrentStreamFollows();

  // Until it is called again with false, nobody comes to the end of joining: it takes its time.
  void HoldJoins(bool hold);
  // The next `count` joins, of whatever rank, end in an error with this text. Their peers hear
  // nothing of it.
  void FailJoins(int count, const std::string& text);
  void FailIds(int count);
  // The next `count` all-reduces or broadcasts that ranks begin end in an error, which they hear of
  // later; their peers hear nothing of it, and wait.
  void FailOperations(int count);
  // All that there is fails, as where the network does: ranks hear of it when they next ask.
  void BreakAll();
  // From now on ranks hear, when they ask or begin something, that another one has aborted its
  // communicator, as where it is on another node. Without this they hear nothing, and wait.
  void TellAborts();

  // Calls of the table so far, and what is called at each: for tests that stop a member there.
  using AtCall = void (*)();
  void CallAtEach(AtCall at_call);

  std::int64_t joined() const;    // communicators that were ready, ever
  std::int64_t existing() const;  // communicators that have not been aborted
};

}  // namespace espalier
