#include "tuner/cli/report/record_file.h"

#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tuner/cli/report/markup.h"
#include "tuner/credentials/sha256.h"
#include "tuner/web/assets/unpacked.h"

namespace espalier::report {
namespace {

constexpr std::string_view kPlainStyle =
    ":root{color-scheme:light dark}body{margin:0 auto;padding:24px 16px;max-width:1040px;"
    "font:15px/1.5 system-ui,sans-serif}table{border-collapse:collapse;font-size:13px}"
    "th,td{text-align:left;vertical-align:top;padding:4px 10px 4px 0;overflow-wrap:anywhere}"
    "pre{white-space:pre-wrap}";

constexpr std::string_view kHowToGetTheRest =
    "<p>The <code>tuner</code> that wrote this was built without the pages for browsers, which "
    "show curves, slots over time and all decisions: scripts/setup.sh installs what they are built "
    "with.</p>\n";

std::string ContentOf(std::span<const WebAsset> assets, std::string_view type) {
  for (const WebAsset& asset : assets) {
    if (asset.type.starts_with(type)) return Unpacked(asset);
  }
  return "";
}

// JSON in an element that is data: nothing in it may look like a tag to the reader of HTML.
std::string AsData(std::string_view json) {
  std::string data;
  data.reserve(json.size());
  for (const char c : json) c == '<' ? data += "\\u003c" : data += c;
  return data;
}

std::string Head(const std::string& title, const std::string& script, std::string_view style) {
  const std::string scripts =
      script.empty() ? "" : absl::StrCat("script-src ", HashSource(script), "; ");
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
      scripts, "style-src ", HashSource(style),
      "; img-src data:; base-uri 'none'; form-action 'none'; "
      "require-trusted-types-for 'script'; trusted-types 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n",
      TitleOf(title), "<link rel=\"icon\" href=\"data:,\">\n<style>", std::string(style),
      "</style>\n</head>\n<body>\n");
}

}  // namespace

std::string TitleOf(const std::string& study) { return "<title>" + Escape(study) + "</title>\n"; }

std::string HashSource(std::string_view text) {
  Sha256 hash;
  hash.Add(text);
  return "'sha256-" + absl::Base64Escape(hash.Take()) + "'";
}

std::string RecordFile(const FileContent& content, std::span<const WebAsset> assets) {
  const std::string script = ContentOf(assets, "text/javascript");
  if (script.empty()) {
    return absl::StrCat(Head(content.title, "", kPlainStyle), content.tables,
                        std::string(kHowToGetTheRest), "</body>\n</html>\n");
  }
  // The script runs where it stands: after what it reads.
  return absl::StrCat(Head(content.title, script, ContentOf(assets, "text/css")),
                      "<div id=\"page\"></div>\n<noscript>\n", content.tables,
                      "</noscript>\n<script type=\"application/json\" id=\"record\">",
                      AsData(content.record), "</script>\n<script>", script,
                      "</script>\n</body>\n</html>\n");
}

}  // namespace espalier::report
