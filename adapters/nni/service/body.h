#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace espalier::nni {

// The object in a request's body, read key by key. The first error is kept, and returned by Finish
// along with keys that were not read; until then readers get their `otherwise`. A null counts as an
// absent key.
class Body {
 public:
  static absl::StatusOr<Body> Parse(std::string_view json);
  ~Body();
  Body(Body&&) noexcept;

  bool Has(std::string_view key) const;
  std::string Text(std::string_view key, std::string otherwise = {});
  std::int64_t Integer(std::string_view key, std::int64_t low, std::int64_t high,
                       std::int64_t otherwise);
  double Number(std::string_view key, double low, double high, double otherwise);
  bool Flag(std::string_view key, bool otherwise);
  // JSON of the object that the key has; "{}" for true; empty: false, or absent.
  std::string Options(std::string_view key);
  std::map<std::string, std::string> Texts(std::string_view key);
  // Any JSON, as text; empty: absent.
  std::string Json(std::string_view key);

  void Needs(std::string_view key, std::string_view what);
  absl::Status Finish() const;

  // What it says but for one key, keys in order.
  std::string Canonical(std::string_view without) const;

 private:
  struct Impl;
  explicit Body(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace espalier::nni
