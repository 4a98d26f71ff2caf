#pragma once

#include <memory>

#include "tuner/core/state/change.h"
#include "tuner/storage/database.h"

namespace espalier {

// Writes changes as rows, within the transaction of its caller. What a change does to existing
// columns is not repeated here: the row is read, TunerState::Apply changes it, and it is written
// back.
class ChangeWriter {
 public:
  // `database` must have the schema, and outlive this.
  static absl::StatusOr<ChangeWriter> Make(Database& database);

  ChangeWriter(ChangeWriter&&) noexcept;
  ~ChangeWriter();

  absl::Status Write(const Change& change);

 private:
  class Impl;
  explicit ChangeWriter(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace espalier
