#include "tuner/cli/interrupts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <iterator>

#include "base/check.h"
#include "tuner/cli/exit_codes.h"

namespace espalier {
namespace {

constexpr std::int64_t kOneEnd_ms = 1000;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

// A signal handler reaches nothing but globals.
std::atomic<int> interrupts{0};
std::atomic<bool> first_was_to_all{false};  // a SIGTERM or SIGHUP
std::atomic<std::int64_t> first_at_ms{0};
std::atomic<bool> notice{false};
std::atomic<int> hangup_notices{0};
std::atomic<bool> hangups_are_notices{false};
std::atomic<bool> had_terminal{false};
std::atomic<bool> hangups_ignored{false};  // by who started us, as nohup does
int wake_pipe[2] = {-1, -1};
struct sigaction former[std::size(kSignals)];

void WakeUp() { [[maybe_unused]] const auto written = write(wake_pipe[1], "!", 1); }

bool HasTerminal() {
  const int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (terminal >= 0) close(terminal);
  return terminal >= 0;
}

std::int64_t Milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// Ends a process with others, and comes from nobody at a keyboard.
bool IsToAll(int signal) { return signal == SIGTERM || signal == SIGHUP; }

void OnSignal(int signal) {
  // What ends a process and its group at once, as `timeout` does, sends the same signal twice;
  // systemd sends a session's processes both; of a closed terminal the system and the shell tell.
  const std::int64_t now_ms = Milliseconds();
  if (IsToAll(signal) && first_was_to_all && now_ms < first_at_ms + kOneEnd_ms) return;
  if (signal == SIGHUP && hangups_are_notices &&
      (hangups_ignored || !had_terminal || HasTerminal())) {
    ++hangup_notices;
    return WakeUp();
  }
  if (signal == SIGUSR1) {
    notice = true;
    return WakeUp();
  }
  if (interrupts.fetch_add(1) > 0) {
    // The live table hides the cursor.
    constexpr char kShowCursorAndEndLine[] = "\x1b[?25h\n";
    if (isatty(STDOUT_FILENO)) {
      [[maybe_unused]] const auto written =
          write(STDOUT_FILENO, kShowCursorAndEndLine, sizeof(kShowCursorAndEndLine) - 1);
    }
    _exit(static_cast<int>(ExitCode::kInterrupted));
  }
  first_at_ms = now_ms;
  first_was_to_all = IsToAll(signal);
  WakeUp();
}

}  // namespace

void IgnoreBrokenPipes() { signal(SIGPIPE, SIG_IGN); }

Interrupts::Interrupts(Hangup hangup) {
  hangups_are_notices = hangup == Hangup::kNotice;
  had_terminal = HasTerminal();
  hangup_notices = 0;
  interrupts = 0;
  first_was_to_all = false;
  notice = false;
  ESPALIER_CHECK(pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) == 0, "a pipe is needed");
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &former[i]);
    const bool ignored = former[i].sa_handler == SIG_IGN;
    if (kSignals[i] == SIGHUP) hangups_ignored = ignored;
    // Under nohup, or in the background of a script, they stay ignored.
    const bool ends_us = kSignals[i] == SIGINT || (kSignals[i] == SIGHUP && !hangups_are_notices);
    if (!ignored || !ends_us) sigaction(kSignals[i], &action, nullptr);
  }
  // The program that became this one by exec may have blocked them until now.
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : kSignals) sigaddset(&ours, signal);
  pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
}

Interrupts::~Interrupts() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &former[i], nullptr);
  }
  close(wake_pipe[0]);
  close(wake_pipe[1]);
}

bool Interrupts::interrupted() const { return interrupts > 0; }
bool Interrupts::terminated() const { return first_was_to_all; }
bool Interrupts::noticed() const { return notice; }
int Interrupts::hangups() const { return hangup_notices; }

void Interrupts::Wake() const { WakeUp(); }

void Interrupts::Wait(double seconds) const {
  const int timeout_ms = std::max(0, static_cast<int>(std::ceil(seconds * 1000)));
  // Once the first interrupt was seen there is nothing more to wake up for.
  pollfd entry{interrupted() ? -1 : wake_pipe[0], POLLIN, 0};
  if (poll(&entry, 1, timeout_ms) <= 0) return;
  char signals[16];
  while (read(wake_pipe[0], signals, sizeof(signals)) > 0) {
  }
}

}  // namespace espalier
