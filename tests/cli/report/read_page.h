#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/views/sample_study.h"
#include "tuner/cli/report/page.h"

namespace espalier {

inline constexpr double kNow = kSampleStart + 20;

inline std::string Page(const v1::StudyDetails& details, const ReportOptions& options = {}) {
  const absl::StatusOr<std::string> page = ReportPage(details, kNow, options);
  EXPECT_TRUE(page.ok()) << page.status();
  return page.value_or("");
}

// What stands between the first of these and the next `end` after it; empty: there is none.
inline std::string Between(const std::string& text, const std::string& begin,
                           const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const std::size_t at = from + begin.size();
  return text.substr(at, text.find(end, at) - at);
}

inline int Count(const std::string& text, const std::string& what) {
  int n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// Of the page itself; empty: it has none.
inline std::string Script(const std::string& page) {
  return Between(page, "<script>", "</script>");
}

inline std::string Rules(const std::string& page) {
  return Between(page, "<meta http-equiv=\"Content-Security-Policy\" content=\"", "\">");
}

inline constexpr const char* kHostile[] = {"</script><script>alert(1)</script>",
                                           "<!--<script>",
                                           "</noscript><img src=x onerror=a>",
                                           "</title><b>",
                                           "\" onload=\"a",
                                           "\xE2\x80\xA8;alert(1)//",
                                           "&lt;b&gt;"};

// A record with this as names, reasons, values and all other texts.
inline v1::StudyDetails Hostile(const std::string& text) {
  v1::StudyDetails details = SampleStudy();
  details.mutable_study()->set_name(text);
  details.mutable_study()->set_metric(text);
  details.mutable_study()->set_reason(text);
  details.mutable_study()->set_notice(text);
  details.mutable_study()->set_study_json(text);
  details.mutable_pool()->mutable_nodes(0)->set_name(text);
  for (v1::Trial& trial : *details.mutable_trials()) {
    trial.set_reason(text);
    trial.set_last_output(text);
    trial.set_checkpoint(text);
    trial.mutable_parameters(0)->set_name(text);
    trial.mutable_parameters(1)->set_json(nlohmann::json(text).dump());
    (*trial.mutable_user_attributes())[text] = nlohmann::json(text).dump();
  }
  for (v1::Decision& decision : *details.mutable_decisions()) decision.set_reason(text);
  return details;
}

}  // namespace espalier
