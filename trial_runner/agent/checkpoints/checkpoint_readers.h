#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "base/status.h"

namespace espalier {

namespace v1 {
class CheckpointPiece;
class ReadCheckpoint;
}  // namespace v1

inline constexpr int kMaxCheckpointReaders = 4;       // at a time; others are told to try again
inline constexpr std::size_t kMaxReadTickets = 4096;  // the oldest goes
inline constexpr std::chrono::seconds kTicketUse{5};
inline constexpr std::size_t kCheckpointPieceBytes = 256 << 10;

// Which checkpoint of which trial a ticket is good for.
struct CheckpointName {
  std::string study;
  std::int64_t trial_number = 0;
  std::string name;  // of a file in the trial's checkpoint folder; empty: the whole folder

  friend bool operator==(const CheckpointName&, const CheckpointName&) = default;
};

// Those that read this agent's checkpoints: who may, how many there are, and what each is sent.
// Methods may be called from any thread; the wire is the caller's affair.
class CheckpointReaders {
 public:
  using FolderOf = std::function<std::string(const CheckpointName&)>;
  // Waits until the reader has taken the piece. False: it has left.
  using PieceTaker = std::function<bool(const v1::CheckpointPiece&)>;

  // `folder_of` is called from several threads.
  explicit CheckpointReaders(FolderOf folder_of);

  // See CheckpointServer.
  void Allow(std::string ticket, CheckpointName what);
  bool busy();
  // Whether `authorization` is a ticket for anything.
  bool Knows(std::string_view authorization);
  // What a reader without one is told.
  static absl::Status NotGood();

  // One reading, to its end. UNAUTHENTICATED: `authorization` is no ticket for it;
  // RESOURCE_EXHAUSTED: there are as many readers as may be.
  absl::Status Read(std::string_view authorization, const v1::ReadCheckpoint& request,
                    const PieceTaker& to);

 private:
  using Clock = std::chrono::steady_clock;
  struct Ticket {
    std::string ticket;
    CheckpointName what;
    Clock::time_point given;
    bool used = false;
  };

  // The ticket in "Bearer TICKET" that was given for this, or for anything where `what` is null;
  // null: there is none. Requires the lock.
  Ticket* Given(std::string_view authorization, const CheckpointName* what);
  bool Admits(std::string_view authorization, const CheckpointName& what);
  absl::Status Send(const CheckpointName& what, const v1::ReadCheckpoint& request,
                    const PieceTaker& to) const;

  const FolderOf folder_of_;
  std::mutex mutex_;
  std::deque<Ticket> tickets_;
  std::atomic<int> readers_ = 0;
};

}  // namespace espalier
