#include "tuner/server/http/http_page_routes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tuner/server/http/entity_tag.h"
#include "tuner/server/http/http_packing.h"
#include "tuner/server/http/login_page.h"
#include "tuner/web/assets/unpacked.h"

namespace espalier {

namespace {

constexpr char kLinks[] =
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Espalier</title></head>"
    "<body><h1>Espalier</h1><ul><li><a href=\"api/studies\">studies</a></li>"
    "<li><a href=\"api/pool\">pool</a></li><li><a href=\"metrics\">metrics</a></li>"
    "<li><a href=\"healthz\">health</a></li><li><a href=\"api/openapi.json\">interface</a></li>";
constexpr char kHowToGetThePages[] =
    "<p>This tuner was built without its pages for browsers. To get them, run "
    "<code>scripts/setup.sh</code>, which installs what they are built with, and build again.</p>";

// Only what this service itself has sent runs, and it speaks to nobody else.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

// Their names change with what is in them.
constexpr char kForever[] = "public, max-age=31536000, immutable";
constexpr char kAskAgain[] = "no-cache";

// The page's own address among the files, and that below which the others are.
constexpr std::string_view kPageAddress = "/";
constexpr std::string_view kBelow = "/ui-assets/";

constexpr int kSeeOther = 303;

using Headers = std::vector<std::pair<std::string, std::string>>;

Headers PageHeaders(const char* cached) {
  return {{"Content-Security-Policy", kPolicy},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cache-Control", cached}};
}

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '/') {
      encoded += c;
    } else {
      absl::StrAppend(&encoded, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return encoded;
}

const WebAsset* FindFile(std::span<const WebAsset> files, std::string_view path) {
  const auto found = std::ranges::find(files, path, &WebAsset::path);
  return found == files.end() ? nullptr : &*found;
}

// As well packed as the client takes it.
HttpAnswer Send(const WebAsset& file, const HttpCall& call, const char* cached) {
  HttpAnswer answer{absl::OkStatus(), "", file.type.data()};
  answer.headers = PageHeaders(cached);
  answer.headers.emplace_back("Vary", "Accept-Encoding");
  const Packing packing = AcceptedPacking(call.accept_encoding);
  if (packing == Packing::kNone) {
    std::optional<std::string> plain = UnpackGzip(file.gzip);
    if (!plain) return {absl::InternalError("this tuner was built with a broken page"), ""};
    answer.body = *std::move(plain);
    return answer;
  }
  const bool brotli = packing == Packing::kBrotli;
  answer.body = std::string(brotli ? file.br : file.gzip);
  answer.headers.emplace_back("Content-Encoding", brotli ? "br" : "gzip");
  return answer;
}

// Its files are found from wherever it was asked for, also below a path that a proxy adds.
HttpAnswer SendPage(const WebAsset& page, const HttpCall& call) {
  const std::optional<std::string> plain = UnpackGzip(page.gzip);
  if (!plain) return {absl::InternalError("this tuner was built with a broken page"), ""};
  const std::string below = absl::StrCat("\"", std::string(kBelow));
  HttpAnswer answer{
      absl::OkStatus(),
      absl::StrReplaceAll(*plain, {{below, absl::StrCat("\"", call.base, below.substr(2))}}),
      page.type.data()};
  answer.headers = PageHeaders(kAskAgain);
  answer.tag = EntityTag(answer.body);
  return answer;
}

// A person with the address of a page, and without a session.
HttpAnswer AskToLogIn(const HttpCall& call) {
  HttpAnswer answer{absl::OkStatus(), "", "text/plain", kSeeOther};
  answer.headers = PageHeaders("no-store");
  answer.headers.emplace_back(
      "Location", absl::StrCat(call.base, "login?to=", PercentEncoded(call.target.substr(1))));
  return answer;
}

HttpAnswer OwnFile(std::string_view text, const char* type) {
  HttpAnswer answer{absl::OkStatus(), std::string(text), type};
  answer.headers = PageHeaders(kAskAgain);
  answer.tag = EntityTag(text);
  return answer;
}

HttpAnswer Links(const std::string& dashboard, bool built, const HttpCall& call) {
  const std::string links =
      absl::StrReplaceAll(kLinks, {{"href=\"", absl::StrCat("href=\"", call.base)}});
  const std::string link =
      dashboard.empty() ? ""
                        : absl::StrCat("<li><a href=\"", dashboard, "\">optuna-dashboard</a></li>");
  HttpAnswer answer{
      absl::OkStatus(),
      absl::StrCat(links, link, "</ul>", built ? "" : kHowToGetThePages, "</body></html>\n"),
      "text/html; charset=utf-8"};
  answer.headers = PageHeaders(kAskAgain);
  answer.tag = EntityTag(answer.body);
  return answer;
}

}  // namespace

std::vector<HttpRoute> PageRoutes(std::string dashboard, std::span<const WebAsset> files) {
  const WebAsset* page = FindFile(files, kPageAddress);
  const auto links = [dashboard = std::move(dashboard), built = page != nullptr](
                         const HttpCall& call) { return Links(dashboard, built, call); };
  const auto home = [page, links](const HttpCall& call) {
    if (page == nullptr) return links(call);
    return Allows(call.role, Role::kView) ? SendPage(*page, call) : AskToLogIn(call);
  };
  const auto file = [files](const HttpCall& call) -> HttpAnswer {
    const std::string& name = call.path.at("file");
    const WebAsset* found = FindFile(files, absl::StrCat(std::string(kBelow), name));
    if (found != nullptr) return Send(*found, call, kForever);
    return {absl::NotFoundError(absl::StrCat("no file \"", name, "\" of this tuner's page")), ""};
  };
  // The page itself reads the rest of its address.
  return {{"GET", "/", "index", home},
          {"GET", "/links", "links", links},
          {"GET", "/ui", "page", home},
          {.method = "GET",
           .path = "/ui/{page}",
           .operation = "pageBelow",
           .answer = home,
           .below = true},
          {"GET", "/ui-assets/{file}", "pageFile", file},
          {"GET", "/login", "login",
           [](const HttpCall&) { return OwnFile(LoginPage(), "text/html; charset=utf-8"); }},
          {"GET", "/login.js", "loginScript",
           [](const HttpCall&) { return OwnFile(LoginScript(), "text/javascript"); }}};
}

}  // namespace espalier
