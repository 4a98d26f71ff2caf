#include "tuner/server/disk_watch.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace espalier {

namespace {

constexpr double kLookPace_s = 2;

std::string FolderOf(const std::string& database) {
  const std::string folder = std::filesystem::path(database).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

DiskWatch::DiskWatch(const std::string& database, std::int64_t reserve_bytes, FreeBytes free_bytes)
    : folder_(FolderOf(database)),
      reserve_bytes_(reserve_bytes),
      free_bytes_(std::move(free_bytes)) {}

void DiskWatch::Look() {
  const std::optional<std::int64_t> free = free_bytes_(folder_);
  const bool was_low = low_bytes_.has_value();
  low_bytes_ = free && *free < reserve_bytes_ ? free : std::nullopt;
  if (low_bytes_ && !was_low) {
    spdlog::warn("event=disk_low folder=\"{}\" free_bytes={} reserve_bytes={}", folder_, *free,
                 reserve_bytes_);
  } else if (!low_bytes_ && was_low) {
    spdlog::info("event=disk_low_over folder=\"{}\"", folder_);
  }
}

std::vector<std::string> DiskWatch::Troubles(Time now) {
  if (!looked_at_ || SecondsBetween(*looked_at_, now) >= kLookPace_s) {
    looked_at_ = now;
    Look();
  }
  if (!low_bytes_) return {};
  return {absl::StrCat("the disk of the database, ", folder_, ", has ", *low_bytes_ >> 20,
                       " MiB free, less than ", reserve_bytes_ >> 20,
                       " MiB: free some, since the service ends when it cannot write")};
}

}  // namespace espalier
