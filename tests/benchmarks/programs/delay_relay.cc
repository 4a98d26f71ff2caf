// A network for tests: a TUN device in each of several network namespaces, and every packet that
// goes into one comes out of its destination's so many microseconds later. The kernels of the test
// machines have no netem.
//
//   delay_relay DELAY_US NAMESPACE,DEVICE,IPV4,IPV6...
//
// Prints "ready" when the devices are there; ends when it is killed.

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLargestPacket = 65536;
constexpr std::size_t kMaxWaiting = 100'000;  // packets; beyond, the network loses them
constexpr int kReadsAtOnce = 64;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "delay_relay: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

struct Packet {
  Clock::time_point due;
  int to = -1;
  std::string bytes;
};

struct Network {
  Clock::duration delay;
  std::vector<int> devices;
  std::map<std::string, int> by_address;  // bytes of an address -> descriptor
  std::deque<Packet> waiting;             // all wait equally long
};

int OpenDevice(const std::string& network_namespace, const std::string& name) {
  const int space = open(network_namespace.c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) Fail(network_namespace);
  close(space);
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) Fail("/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(device, TUNSETIFF, &request) != 0) Fail("device " + name);
  return device;
}

std::string AddressBytes(int family, const std::string& text) {
  std::string bytes(family == AF_INET ? 4 : 16, '\0');
  if (inet_pton(family, text.c_str(), bytes.data()) != 1) Fail("address " + text);
  return bytes;
}

void AddHost(Network& network, const std::string& argument) {
  std::istringstream fields(argument);
  std::string space;
  std::string device;
  std::string ipv4;
  std::string ipv6;
  std::getline(fields, space, ',');
  std::getline(fields, device, ',');
  std::getline(fields, ipv4, ',');
  std::getline(fields, ipv6, ',');
  const int opened = OpenDevice(space, device);
  network.devices.push_back(opened);
  network.by_address[AddressBytes(AF_INET, ipv4)] = opened;
  network.by_address[AddressBytes(AF_INET6, ipv6)] = opened;
}

// The destination's device; none: it is nobody's (multicast, say).
std::optional<int> Destination(const Network& network, const std::string& packet) {
  if (packet.size() < 20) return std::nullopt;
  const int version = static_cast<unsigned char>(packet[0]) >> 4;
  const std::string address = version == 4                          ? packet.substr(16, 4)
                              : version == 6 && packet.size() >= 40 ? packet.substr(24, 16)
                                                                    : "";
  const auto found = network.by_address.find(address);
  if (found == network.by_address.end()) return std::nullopt;
  return found->second;
}

void Take(Network& network, int device) {
  static std::string buffer(kLargestPacket, '\0');
  for (int i = 0; i < kReadsAtOnce; ++i) {
    const ssize_t got = read(device, buffer.data(), buffer.size());
    if (got <= 0) return;
    std::string packet(buffer.data(), static_cast<std::size_t>(got));
    const std::optional<int> to = Destination(network, packet);
    if (!to || network.waiting.size() >= kMaxWaiting) continue;
    network.waiting.push_back({Clock::now() + network.delay, *to, std::move(packet)});
  }
}

void Deliver(Network& network) {
  const Clock::time_point now = Clock::now();
  while (!network.waiting.empty() && network.waiting.front().due <= now) {
    const Packet& packet = network.waiting.front();
    // A device that is down or full loses it, as networks do.
    [[maybe_unused]] const ssize_t wrote =
        write(packet.to, packet.bytes.data(), packet.bytes.size());
    network.waiting.pop_front();
  }
}

void Wait(const Network& network, std::vector<pollfd>& polled) {
  timespec until{};
  if (!network.waiting.empty()) {
    const auto left = std::max(Clock::duration::zero(), network.waiting.front().due - Clock::now());
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    until.tv_sec = ns / 1'000'000'000;
    until.tv_nsec = ns % 1'000'000'000;
  }
  ppoll(polled.data(), polled.size(), network.waiting.empty() ? nullptr : &until, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: delay_relay DELAY_US NAMESPACE,DEVICE,IPV4,IPV6...\n");
    return 2;
  }
  Network network{std::chrono::microseconds(std::atoll(argv[1])), {}, {}, {}};
  for (int i = 2; i < argc; ++i) AddHost(network, argv[i]);
  std::printf("ready\n");
  std::fflush(stdout);
  std::vector<pollfd> polled;
  for (const int device : network.devices) polled.push_back({device, POLLIN, 0});
  while (true) {
    Wait(network, polled);
    for (const pollfd& device : polled) {
      if (device.revents != 0) Take(network, device.fd);
    }
    Deliver(network);
  }
}
