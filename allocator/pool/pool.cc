#include "allocator/pool/pool.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace espalier {

std::string NameOf(const Job& job) {
  return job.name.empty() ? absl::StrCat("trial ", job.id.value) : job.name;
}

std::string NameOf(const NodeCapacity& node) {
  return node.name.empty() ? absl::StrCat("node ", node.id.value) : node.name;
}

std::string SizesText(const std::vector<int>& sizes) {
  if (sizes.size() < 2) return absl::StrJoin(sizes, "");
  return absl::StrCat(absl::StrJoin(sizes.begin(), sizes.end() - 1, ", "), " and ", sizes.back());
}

std::string SlotsText(int n) { return n == 1 ? "1 slot" : absl::StrCat(n, " slots"); }

}  // namespace espalier
