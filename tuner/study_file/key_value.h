#pragma once

// Private to this folder: it shows the JSON library.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "search_spaces/json_text.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

// A study file that is being read. The text and its JSON outlive it.
struct OpenStudyFile {
  std::string_view text;
  const search_spaces_json::Json& json;
  std::string label;
  std::string folder;  // from which relative paths in it are taken
  SpaceFiles files = SpaceFiles::kRefused;

  // Whether clients run the trials, as far as the text says.
  bool ByClients() const;
  absl::Status Bad(std::string_view key, std::string_view problem) const;
  // Refuses keys of `object` that are not known; `where` is put before their names in messages.
  absl::Status CheckKeys(std::string_view where, const search_spaces_json::Json& object,
                         std::span<const std::string_view> known) const;
};

// The value of a key of a study file, or of a key within it ("metric.direction"). Errors name the
// file, the key, the value and what would be right. The file, the key and the JSON outlive it.
class KeyValue {
 public:
  using Json = search_spaces_json::Json;

  KeyValue(const OpenStudyFile& file, std::string_view key, const Json& json)
      : file_(file), key_(key), json_(json) {}

  const OpenStudyFile& file() const { return file_; }
  std::string_view key() const { return key_; }
  const Json& json() const { return json_; }

  absl::Status Bad(std::string_view problem) const { return file_.Bad(key_, problem); }
  absl::Status Needs(std::string_view what) const { return Needs(what, json_); }
  absl::Status Needs(std::string_view what, const Json& got) const;
  absl::Status CheckKeys(std::span<const std::string_view> known) const;

  absl::Status Integer(std::int64_t low, std::int64_t high, std::int64_t& result) const;
  absl::Status Integer(std::int64_t low, std::int64_t high, int& result) const;
  absl::Status Number(double& result) const;
  absl::Status Range(const char* what, double low, double high, double& result) const;
  absl::Status Price(double& result) const;  // more than 0
  absl::Status Text(std::size_t max_bytes, std::string& result) const;
  // The word itself, empty for what is not a string.
  std::string Word() const;

 private:
  const OpenStudyFile& file_;
  const std::string_view key_;
  const Json& json_;
};

inline constexpr std::size_t kMaxNameBytes = 128;         // of a study, metric or plug-in
inline constexpr std::int64_t kMaxCount = 1'000'000'000;  // trials, steps, failures

}  // namespace espalier
