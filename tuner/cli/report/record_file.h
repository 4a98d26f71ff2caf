#pragma once

#include <span>
#include <string>

#include "tuner/web/assets/web_assets.h"

namespace espalier::report {

struct FileContent {
  std::string title;
  std::string tables;  // HTML, for readers without scripts
  std::string record;  // JSON
};

// One file with the pages and the record in it. What may run in it, and what may style it, its own
// rules say by their SHA-256, and nothing else may; it reaches no network. Without `assets` it is
// the tables, and a word on how to get the rest.
std::string RecordFile(const FileContent& content, std::span<const WebAsset> assets);

// The element by which a page is known to be one on this study.
std::string TitleOf(const std::string& study);

// "sha256-...", as a content security policy names a script or a style.
std::string HashSource(std::string_view text);

}  // namespace espalier::report
