#include "tuner/cli/interrupts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>

#include "tuner/base/check.h"
#include "tuner/cli/exit_codes.h"

namespace espalier {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// A signal handler reaches nothing but globals.
std::atomic<int> interrupts{0};
int wake_pipe[2] = {-1, -1};
struct sigaction former[std::size(kSignals)];

void OnSignal(int) {
  if (interrupts.fetch_add(1) > 0) {
    // The live table hides the cursor.
    constexpr char kShowCursor[] = "\x1b[?25h\n";
    if (isatty(STDOUT_FILENO)) {
      [[maybe_unused]] const auto written =
          write(STDOUT_FILENO, kShowCursor, sizeof(kShowCursor) - 1);
    }
    _exit(static_cast<int>(ExitCode::kInterrupted));
  }
  [[maybe_unused]] const auto written = write(wake_pipe[1], "!", 1);
}

}  // namespace

Interrupts::Interrupts() {
  interrupts = 0;
  ESPALIER_CHECK(pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) == 0, "a pipe is needed");
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &action, &former[i]);
  }
}

Interrupts::~Interrupts() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &former[i], nullptr);
  }
  close(wake_pipe[0]);
  close(wake_pipe[1]);
}

bool Interrupts::interrupted() const { return interrupts > 0; }

void Interrupts::Wait(double seconds) const {
  const int timeout_ms = std::max(0, static_cast<int>(std::ceil(seconds * 1000)));
  // Once the first interrupt was seen there is nothing more to wake up for.
  pollfd entry{interrupted() ? -1 : wake_pipe[0], POLLIN, 0};
  poll(&entry, 1, timeout_ms);
}

}  // namespace espalier
