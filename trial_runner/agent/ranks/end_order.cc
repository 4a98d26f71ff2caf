#include "trial_runner/agent/ranks/end_order.h"

#include <poll.h>
#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <utility>

namespace espalier {

EndOrder::EndOrder() : ends_(epoll_create1(EPOLL_CLOEXEC)) {}

void EndOrder::Watch(int number, FileDescriptor process) {
  pollfd ended{process.get(), POLLIN, 0};
  if (poll(&ended, 1, 0) != 0) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.fd = number;
  if (epoll_ctl(ends_.get(), EPOLL_CTL_ADD, process.get(), &event) != 0) return;
  watched_.push_back(std::move(process));
}

std::vector<int> EndOrder::Take() {
  std::vector<int> numbers;
  std::array<epoll_event, 64> events;
  while (true) {
    const int ended = epoll_wait(ends_.get(), events.data(), events.size(), 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended <= 0) return numbers;
    for (int i = 0; i < ended; ++i) {
      numbers.push_back(events[static_cast<std::size_t>(i)].data.fd);
    }
  }
}

}  // namespace espalier
