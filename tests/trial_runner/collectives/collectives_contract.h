#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"

namespace espalier {

// One way to be Collectives, and the memory that the contract suite has it work on.
struct CollectivesUnderTest {
  std::string name;
  // Whether LibTorch can compute on the buffers: not where their device is a stand-in.
  bool libtorch_computes = true;
  // `member` counts the members of a test from 0, all in this process.
  std::function<absl::StatusOr<std::unique_ptr<Collectives>>(const CollectivesOptions&, int member)>
      make;
  // A buffer with this content, and the content of a buffer.
  std::function<CollectiveBuffer(CollectiveBuffer::Type, const std::vector<std::uint8_t>& bytes,
                                 std::int64_t count, int member)>
      place;
  std::function<std::vector<std::uint8_t>(const CollectiveBuffer&)> read;
};

// How GoogleTest names it.
inline void PrintTo(const CollectivesUnderTest& tested, std::ostream* out) { *out << tested.name; }

// Those that can run on this machine. Says on standard error which cannot, and why.
const std::vector<CollectivesUnderTest>& AllCollectivesUnderTest();

}  // namespace espalier
