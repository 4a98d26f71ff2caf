#include "tuner/study_file/study_search_space.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search_spaces/formats/nni/search_space_reading.h"
#include "tuner/study_file/text_file.h"

namespace espalier {
namespace {

absl::StatusOr<SearchSpace> Result(const std::string& label, SearchSpaceReading reading) {
  const absl::Status status = reading.status();
  if (status.ok()) return std::move(reading.space);
  return absl::InvalidArgumentError(absl::StrCat(label, ": ", std::string(status.message())));
}

}  // namespace

absl::StatusOr<SearchSpace> SearchSpaceOfFile(const std::string& label, const std::string& folder,
                                              const std::string& name, SpaceFiles files) {
  if (files == SpaceFiles::kRefused) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": \"search_space\": needs an object of parameters, got \"", name,
                     "\": a service reads no file that a client names"));
  }
  const std::string path = (std::filesystem::path(folder) / name).string();
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(label, ": \"search_space\": file ", path, ": ",
                                                   std::string(text.status().message()),
                                                   "; its path is taken from ", folder));
  }
  ESPALIER_ASSIGN_OR_RETURN(const std::string json, JsonInFile(*text, path));
  return Result(path, ReadSearchSpace(json));
}

absl::StatusOr<SearchSpace> SearchSpaceWithin(const std::string& label, std::string_view text) {
  return Result(label, ReadSearchSpace(text, "/search_space"));
}

}  // namespace espalier
