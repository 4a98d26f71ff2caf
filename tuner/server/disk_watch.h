#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/free_disk.h"

namespace espalier {

// The room that is to be left for the database: a commit that fails ends the service.
inline constexpr std::int64_t kDatabaseReserve_bytes = std::int64_t{256} << 20;

// Says when the disk of the database has less room than the reserve: one line in the log as that
// begins, and one as it ends, and a line for people as long as it lasts. One thread.
class DiskWatch {
 public:
  using FreeBytes = std::function<std::optional<std::int64_t>(const std::string& folder)>;

  DiskWatch(const std::string& database, std::int64_t reserve_bytes,
            FreeBytes free_bytes = FreeDiskBytes);

  // Looks now and then, however often it is called.
  std::vector<std::string> Troubles(Time now);

 private:
  void Look();

  const std::string folder_;
  const std::int64_t reserve_bytes_;
  const FreeBytes free_bytes_;
  std::optional<Time> looked_at_;
  std::optional<std::int64_t> low_bytes_;  // what is left, where that is too little
};

}  // namespace espalier
