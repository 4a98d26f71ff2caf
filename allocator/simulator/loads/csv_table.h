#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace espalier {

// A file of comma-separated values with a header, without quotes. NotFound names a file that is
// missing; InvalidArgument names file, line and what would be right.
class CsvTable {
 public:
  // Keeps the named columns, in this order; others may be there.
  static absl::StatusOr<CsvTable> Read(const std::string& path,
                                       const std::vector<std::string>& columns);

  std::size_t size() const { return rows_.size(); }
  const std::string& Text(std::size_t row, std::size_t column) const { return rows_[row][column]; }
  absl::StatusOr<double> Number(std::size_t row, std::size_t column) const;
  absl::StatusOr<std::int64_t> Count(std::size_t row, std::size_t column) const;

 private:
  absl::Status Refuse(std::size_t row, std::size_t column, const std::string& needed) const;

  std::string path_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace espalier
