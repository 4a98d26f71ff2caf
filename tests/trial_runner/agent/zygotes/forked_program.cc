// A program in C++ as a zygote sees it: it does what its first argument says, comes to its Trial,
// and does what the second one says. After the first line that it prints before, it prints which
// obstacle there was, then facts about the process.

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "trial_runner/control/fork_point.h"

extern char** environ;

namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::replace(text.begin(), text.end(), '\0', '\n');
  return text;
}

std::string Sorted(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void Before(const std::string& what) {
  std::fputs("printed ", stdout);
  std::cout << "before\n";
  if (what == "thread") std::thread([] { pause(); }).detach();
  if (what == "file") [[maybe_unused]]
    const int file = open("/dev/null", O_RDONLY);
  if (what == "output") std::freopen("/dev/null", "w", stdout);
  if (what == "child" && fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pause();
    _exit(0);
  }
  if (what == "memory") {
    static std::vector<char> memory((std::size_t{1} << 30) + (std::size_t{16} << 20), 1);
    std::printf("%d\n", memory[memory.size() / 2]);
  }
  if (what == "much") std::fputs(std::string(std::size_t{65} << 10, 'x').c_str(), stdout);
  // What no zygote may wait for, or run on from.
  if (std::getenv("ESPALIER_ZYGOTE") == nullptr) return;
  if (what == "end") std::exit(0);
  if (what == "hang") pause();
}

void Facts(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) std::printf("argument %s\n", argv[i]);
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  std::printf("variables %s", Sorted(variables).c_str());
  std::printf("folder %s\n", std::filesystem::current_path().c_str());
  std::vector<std::string> descriptors;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    descriptors.push_back(entry.path().filename());
  }
  std::printf("descriptors %s", Sorted(descriptors).c_str());
  std::printf("output %d %d\n", fcntl(1, F_GETFL), fcntl(3, F_GETFD));
  std::string shown = Read("/proc/self/environ");
  std::vector<std::string> lines;
  for (std::size_t end; (end = shown.find('\n')) != std::string::npos; shown.erase(0, end + 1)) {
    lines.push_back(shown.substr(0, end));
  }
  std::printf("shown %s", Sorted(lines).c_str());
  for (const char* file : {"cmdline", "comm", "cgroup", "oom_score_adj"}) {
    std::printf("%s %s\n", file, Read(std::string("/proc/self/") + file).c_str());
  }
  int death = 0;
  prctl(PR_GET_PDEATHSIG, &death);
  std::printf("killed with its agent %d, leads %d, parent %d, session %d\n", death,
              getpgrp() == getpid(), getppid(), getsid(0));
  for (int number = 1; number < 32; ++number) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    std::printf("signal %d %d\n", number, action.sa_handler == SIG_DFL);
  }
  for (int number = 0; number < 10; ++number) {
    rlimit limit{};
    getrlimit(static_cast<__rlimit_resource>(number), &limit);
    std::printf("limit %d %ju\n", number, static_cast<std::uintmax_t>(limit.rlim_cur));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string before = argc > 1 ? argv[1] : "";
  const std::string after = argc > 2 ? argv[2] : "";
  Before(before);
  if (before == "variables") {
    setenv("SET", "1", 1);
    setenv("LINES", "longer", 1);
    unsetenv("EMPTY");
  }
  espalier::BeForked();
  std::printf("obstacle: %s.\n", espalier::ForkObstacle().c_str());
  Facts(argc, argv);
  std::fflush(nullptr);
  char byte = 0;
  if (after == "answer" && read(3, &byte, 1) == 1) byte = static_cast<char>(std::toupper(byte));
  if (after == "answer") return write(3, &byte, 1) == 1 ? 0 : 1;
  if (after == "code") return 3;
  if (after == "abort") std::abort();
  if (after == "kill") raise(SIGKILL);
  if (after == "wait") pause();
  if (after == "at_exit") std::atexit([] { std::puts("at exit"); });
  return 0;
}
