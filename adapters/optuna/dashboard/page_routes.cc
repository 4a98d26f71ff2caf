// The front end's files, and what they ask of the server before anything else.

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "adapters/optuna/dashboard/listener.h"
#include "tuner/server/http/http_connections.h"

namespace espalier::optuna_dashboard {

namespace {

// As strict as the front end lets it be: its plots compile shaders, its styles are inline.
constexpr char kPolicy[] =
    "default-src 'self';img-src 'self' data: blob:;frame-src 'self';object-src 'none';"
    "connect-src 'self';style-src 'self' data: 'unsafe-inline';script-src 'self' 'unsafe-eval'";

constexpr char kNoPages[] =
    "<!doctype html><html><head><meta charset=\"utf-8\"><title>Espalier</title></head><body>"
    "<h1>optuna-dashboard</h1><p>This service answers optuna-dashboard's requests; its pages are "
    "in the Python package. Install it, and start the service with them:</p>"
    "<pre>pip install optuna-dashboard\n"
    "tuner serve ... --dashboard-dir \"$(python3 -c 'import optuna_dashboard; "
    "print(optuna_dashboard.__path__[0])')\"</pre></body></html>\n";

absl::StatusOr<std::string> ReadWhole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("no page ", path.filename().string()));
  std::ostringstream content;
  content << file.rdbuf();
  return std::move(content).str();
}

std::string TypeOf(const std::string& file) {
  if (file.ends_with(".js")) return "text/javascript";
  if (file.ends_with(".css")) return "text/css";
  if (file.ends_with(".ico")) return "image/x-icon";
  return file.ends_with(".txt") ? "text/plain" : "application/octet-stream";
}

// The packed one where there is one and the browser takes it.
absl::StatusOr<Answer> File(const std::filesystem::path& folder, const std::string& name,
                            const httplib::Request& request) {
  const bool packed =
      request.get_header_value(kAcceptEncodingHeader).find("gzip") != std::string::npos;
  if (packed) {
    if (absl::StatusOr<std::string> content = ReadWhole(folder / (name + ".gz")); content.ok()) {
      return Answer{.status = 200,
                    .body = *std::move(content),
                    .type = TypeOf(name),
                    .headers = {{"Content-Encoding", "gzip"}, {"Vary", "Accept-Encoding"}}};
    }
  }
  ESPALIER_ASSIGN_OR_RETURN(std::string content, ReadWhole(folder / name));
  return Answer{200, std::move(content), TypeOf(name), {{"Vary", "Accept-Encoding"}}};
}

}  // namespace

void Dashboard::Listener::AddPages(httplib::Server& server) {
  const std::filesystem::path folder = options.page_folder;
  server.Get("/", Route("index", [](const httplib::Request&) -> absl::StatusOr<Answer> {
               return Answer{302, "", "text/plain", {{"Location", "/dashboard"}}};
             }));
  // Whatever follows is the front end's own affair.
  server.Get("/dashboard(/.*)?",
             Route("page", [folder](const httplib::Request&) -> absl::StatusOr<Answer> {
               if (folder.empty()) return Answer{200, kNoPages, "text/html; charset=utf-8"};
               ESPALIER_ASSIGN_OR_RETURN(std::string page, ReadWhole(folder / "index.html"));
               return Answer{200,
                             std::move(page),
                             "text/html; charset=utf-8",
                             {{"Content-Security-Policy", kPolicy}}};
             }));
  server.Get("/favicon\\.ico", Route("static", [folder](const httplib::Request& request) {
               return File(folder / "img", "favicon.ico", request);
             }));
  // One folder, without names that lead out of it.
  server.Get("/static/([A-Za-z0-9_-][A-Za-z0-9._-]*)",
             Route("static", [folder](const httplib::Request& request) {
               return File(folder / "public", request.matches[1], request);
             }));
  server.Get(
      "/api/meta/?", Route("meta", [this](const httplib::Request&) -> absl::StatusOr<Answer> {
        return Answer{
            200,
            absl::StrCat("{\"artifact_is_available\":", artifacts.available() ? "true" : "false",
                         ",\"llm_is_available\":false,\"plotlypy_is_available\":false,"
                         "\"allow_unsafe\":false}")};
      }));
  server.Post("/api/llm/.*", Route("llm", [](const httplib::Request&) -> absl::StatusOr<Answer> {
                return absl::InvalidArgumentError("No access to the LLM provider.");
              }));
}

}  // namespace espalier::optuna_dashboard
