#include "allocator/pool/pool.h"

#include "absl/strings/str_cat.h"

namespace espalier {

std::string NameOf(const Job& job) {
  return job.name.empty() ? absl::StrCat("trial ", job.id.value) : job.name;
}

std::string NameOf(const NodeCapacity& node) {
  return node.name.empty() ? absl::StrCat("node ", node.id.value) : node.name;
}

std::string SlotsText(int n) { return n == 1 ? "1 slot" : absl::StrCat(n, " slots"); }

}  // namespace espalier
