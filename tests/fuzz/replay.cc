// Without libFuzzer: each target with every input of its corpus, in FOLDER/TARGET.

#include <fuzz_targets.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/check_scope.h"

namespace {

namespace fs = std::filesystem;

std::string ContentOf(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// How many there were.
int Replay(const fs::path& folder, FuzzTarget target) {
  int inputs = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    const auto name = [&path] { return path; };
    const espalier::CheckScope scope(name);
    const std::string content = ContentOf(path);
    target(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
    ++inputs;
  }
  return inputs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_corpus FOLDER\n");
    return 2;
  }
  bool empty = false;
  for (const auto& [name, target] : kFuzzTargets) {
    const int inputs = Replay(fs::path(argv[1]) / name, target);
    std::printf("%s: %d inputs\n", name, inputs);
    empty = empty || inputs == 0;
  }
  return empty ? 1 : 0;
}
