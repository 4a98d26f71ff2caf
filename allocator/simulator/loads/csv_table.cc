#include "allocator/simulator/loads/csv_table.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace espalier {

absl::StatusOr<CsvTable> CsvTable::Read(const std::string& path,
                                        const std::vector<std::string>& columns) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("file \"", path, "\" cannot be read"));
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> header = absl::StrSplit(line, ',');
  std::vector<std::size_t> positions;
  for (const std::string& column : columns) {
    const auto found = std::find(header.begin(), header.end(), column);
    if (found == header.end()) {
      return absl::InvalidArgumentError(absl::StrCat("file \"", path, "\": needs a column \"",
                                                     column, "\"; it has ",
                                                     absl::StrJoin(header, ", ")));
    }
    positions.push_back(static_cast<std::size_t>(found - header.begin()));
  }
  CsvTable table;
  table.path_ = path;
  table.columns_ = columns;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (cells.size() != header.size()) {
      return absl::InvalidArgumentError(absl::StrCat("file \"", path, "\" line ",
                                                     table.rows_.size() + 2, ": needs ",
                                                     header.size(), " values, got ", cells.size()));
    }
    std::vector<std::string>& row = table.rows_.emplace_back();
    for (const std::size_t position : positions) row.push_back(cells[position]);
  }
  return table;
}

absl::Status CsvTable::Refuse(std::size_t row, std::size_t column,
                              const std::string& needed) const {
  return absl::InvalidArgumentError(absl::StrCat("file \"", path_, "\" line ", row + 2, ": \"",
                                                 columns_[column], "\" needs ", needed, ", got \"",
                                                 Text(row, column), "\""));
}

absl::StatusOr<double> CsvTable::Number(std::size_t row, std::size_t column) const {
  double value = 0;
  if (!absl::SimpleAtod(Text(row, column), &value)) return Refuse(row, column, "a number");
  return value;
}

absl::StatusOr<std::int64_t> CsvTable::Count(std::size_t row, std::size_t column) const {
  std::int64_t value = 0;
  if (!absl::SimpleAtoi(Text(row, column), &value) || value < 0) {
    return Refuse(row, column, "a whole number >= 0");
  }
  return value;
}

}  // namespace espalier
