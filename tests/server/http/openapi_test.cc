// docs/openapi.json and the list of calls in docs/http.md are what the table of operations
// (tuner/api/operations.h) says. With ESPALIER_WRITE_DOCS=1 in its environment this program writes
// there what is missing; descriptions, examples and what an operation has besides are written by
// hand and stay.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "tuner/api/operations.h"
#include "tuner/messages/training_figures.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {
namespace {

using PageJson = nlohmann::ordered_json;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// A row of the table without its types.
struct Row {
  api::OperationFacts facts;
  const Descriptor* request;
  const Descriptor* response;

  std::string method() const { return std::string(facts.http, std::strcspn(facts.http, " ")); }
  std::string path() const { return std::strchr(facts.http, ' ') + 1; }
  std::vector<std::string> path_names() const {
    std::vector<std::string> names;
    const std::string text = path();
    for (std::size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
      names.push_back(text.substr(at + 1, text.find('}', at) - at - 1));
    }
    return names;
  }
  bool takes_key() const { return request->FindFieldByName("request_key") != nullptr; }
  // The fields of its JSON body.
  std::vector<const FieldDescriptor*> body() const {
    std::set<std::string> elsewhere = {"request_key"};
    for (const std::string& name : path_names()) {
      elsewhere.insert(request->FindFieldByName(name) != nullptr ? name : "name");
    }
    std::vector<const FieldDescriptor*> fields;
    for (int i = 0; i < request->field_count(); ++i) {
      if (!elsewhere.contains(request->field(i)->name())) fields.push_back(request->field(i));
    }
    return fields;
  }
};

std::vector<Row> HttpRows() {
  std::vector<Row> rows;
  api::ForEachOperation(
      [&rows]<typename Request, typename Response>(const api::Operation<Request, Response>& row) {
        if (*row.http != '\0') rows.push_back({row, Request::descriptor(), Response::descriptor()});
      });
  return rows;
}

PageJson Reference(const std::string& kind, const std::string& name) {
  return {{"$ref", absl::StrCat("#/components/", kind, "/", name)}};
}

// What is said of a field's values, without a description.
PageJson TypeOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return {{"type", "string"}};
    case FieldDescriptor::CPPTYPE_BOOL:
      return {{"type", "boolean"}};
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Reference("schemas", "Number");
    case FieldDescriptor::CPPTYPE_ENUM:
      return Reference("schemas", field.enum_type()->name());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Reference("schemas", field.message_type()->name());
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      break;
  }
  return {{"type", "integer"}};
}

PageJson SchemaOf(const std::vector<const FieldDescriptor*>& fields) {
  PageJson properties = PageJson::object();
  for (const FieldDescriptor* field : fields) {
    properties[field->name()] = field->is_repeated()
                                    ? PageJson{{"type", "array"}, {"items", TypeOf(*field)}}
                                    : TypeOf(*field);
  }
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

PageJson JsonContent(const std::string& schema) {
  return {{"application/json", {{"schema", Reference("schemas", schema)}}}};
}

// What the page has to say of an operation.
PageJson EntryOf(const Row& row) {
  PageJson entry = {{"operationId", row.facts.name}, {"summary", row.facts.summary}};
  if (row.takes_key()) entry["parameters"] = PageJson::array({Reference("parameters", "key")});
  const bool has_body = row.method() != "GET" && !row.body().empty();
  if (has_body) entry["requestBody"] = {{"content", JsonContent(row.request->name())}};
  std::vector<std::string> errors = {"400", "401", "403", "503"};
  const std::vector<std::string> names = row.path_names();
  if (!names.empty()) errors.emplace_back("404");
  if (has_body) errors.emplace_back("413");
  std::ranges::sort(errors);
  entry["responses"]["200"] = {{"description", "Success."},
                               {"content", JsonContent(row.response->name())}};
  for (const std::string& code : errors) entry["responses"][code] = Reference("responses", code);
  return entry;
}

// `given` with what it lacks of `wanted`. Of what both have, texts are those of `wanted`; the
// schemas of the operations that do not take or give their messages as JSON stay.
void Complete(PageJson& given, const PageJson& wanted, bool keep_content) {
  for (const auto& [key, value] : wanted.items()) {
    if (!given.contains(key)) {
      given[key] = value;
      continue;
    }
    if (key == "content" && keep_content) continue;
    if (value.is_object()) {
      Complete(given[key], value, keep_content);
    } else if (value.is_array()) {
      for (const PageJson& item : value) {
        if (std::ranges::count(given[key], item) == 0) given[key].push_back(item);
      }
    } else if (key != "description") {
      given[key] = value;
    }
  }
}

PageJson CompletePage(PageJson page) {
  const std::set<std::string> own_content = {"CreateStudy", "GetTrialOutput"};
  for (const Row& row : HttpRows()) {
    PageJson& path = page["paths"][row.path()];
    if (path.is_null()) path = PageJson::object();
    PageJson parameters = PageJson::array();
    for (const std::string& name : row.path_names()) {
      parameters.push_back(Reference("parameters", name));
    }
    if (!parameters.empty()) Complete(path, {{"parameters", parameters}}, false);
    PageJson& entry = path[absl::AsciiStrToLower(row.method())];
    if (entry.is_null()) entry = PageJson::object();
    const bool own = own_content.contains(row.facts.name);
    Complete(entry, EntryOf(row), own);
    PageJson& schemas = page["components"]["schemas"];
    if (entry.contains("requestBody") && !own && !schemas.contains(row.request->name())) {
      schemas[row.request->name()] = SchemaOf(row.body());
    }
    if (!own && !schemas.contains(row.response->name())) {
      std::vector<const FieldDescriptor*> all;
      for (int i = 0; i < row.response->field_count(); ++i) all.push_back(row.response->field(i));
      schemas[row.response->name()] = SchemaOf(all);
    }
  }
  return page;
}

constexpr char kTableHead[] = "| call | what it does | role |\n|---|---|---|\n";

// The table of docs/http.md.
std::string CallsTable() {
  std::string table = kTableHead;
  for (const Row& row : HttpRows()) {
    absl::StrAppend(&table, "| `", row.facts.http, "` | ", row.facts.summary, " | ",
                    RoleName(row.facts.role), row.facts.trial ? ", or the trial itself" : "",
                    " |\n");
  }
  return table;
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
}

// Where the documents are, if they are to be written.
const char* Wanted() {
  return std::getenv("ESPALIER_WRITE_DOCS") == nullptr ? nullptr : ESPALIER_DOCS;
}

constexpr char kRemedy[] =
    "the page is not what tuner/api/operations.h says: run this test with ESPALIER_WRITE_DOCS=1";

TEST(OpenApi, SaysWhatTheTableOfOperationsSays) {
  const std::string path = absl::StrCat(ESPALIER_DOCS, "/openapi.json");
  const PageJson page = PageJson::parse(TextOf(path));
  const PageJson complete = CompletePage(page);
  if (Wanted() != nullptr && complete != page) WriteText(path, complete.dump(1) + "\n");
  EXPECT_TRUE(complete == page) << kRemedy << ": " << PageJson::diff(page, complete).dump(1);
}

TEST(OpenApi, HasEachRouteAndNoOther) {
  std::set<std::string> routes;
  for (const HttpRoute& route : OwnRoutes("", nullptr)) {
    routes.insert(absl::StrCat(std::string(route.method), " ", std::string(route.path), " ",
                               route.operation));
  }
  std::set<std::string> described;
  const PageJson page = PageJson::parse(OpenApiText());
  for (const auto& [path, methods] : page.at("paths").items()) {
    for (const auto& [method, entry] : methods.items()) {
      if (method == "parameters") continue;
      described.insert(absl::StrCat(absl::AsciiStrToUpper(method), " ", path, " ",
                                    entry.at("operationId").get<std::string>()));
    }
  }
  EXPECT_EQ(routes, described);
}

// Of one method of a path.
std::set<std::string> QueryOnPage(const PageJson& page, const PageJson& entry) {
  std::set<std::string> keys;
  for (const PageJson& parameter : entry.value("parameters", PageJson::array())) {
    const std::string reference = parameter.value("$ref", "");
    const PageJson& said =
        reference.empty() ? parameter : page.at(PageJson::json_pointer(reference.substr(1)));
    if (said.at("in") == "query") keys.insert(said.at("name").get<std::string>());
  }
  return keys;
}

TEST(OpenApi, HasTheKeysOfEachQuery) {
  const PageJson page = PageJson::parse(OpenApiText());
  for (const HttpRoute& route : OwnRoutes("", nullptr)) {
    const std::string path(route.path);
    if (!path.starts_with("/api/")) continue;
    const std::string method = absl::AsciiStrToLower(std::string(route.method));
    ASSERT_TRUE(route.query.has_value())
        << method << " " << path << " has to say which keys its query takes (HttpRoute::query)";
    EXPECT_EQ(std::set<std::string>(route.query->begin(), route.query->end()),
              QueryOnPage(page, page.at("paths").at(path).at(method)))
        << method << " " << path;
  }
}

TEST(OpenApi, NewOperationsAreDescribedFromTheirMessages) {
  PageJson page = PageJson::parse(OpenApiText());
  const PageJson whole = page;
  page["paths"].erase("/api/nodes/{node}/drain");
  page["components"]["schemas"].erase("DrainNodeRequest");
  page = CompletePage(page);
  EXPECT_EQ(page["paths"]["/api/nodes/{node}/drain"]["post"]["responses"],
            whole["paths"]["/api/nodes/{node}/drain"]["post"]["responses"]);
  EXPECT_EQ(page["components"]["schemas"]["DrainNodeRequest"]["properties"]["within_s"],
            Reference("schemas", "Number"));
}

TEST(OpenApi, TheListOfCallsSaysWhatTheTableSays) {
  const std::string path = absl::StrCat(ESPALIER_DOCS, "/http.md");
  const std::string page = TextOf(path);
  const std::size_t begin = page.find(kTableHead);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find("\n\n", begin) + 1;
  const std::string table = CallsTable();
  if (Wanted() != nullptr) WriteText(path, page.substr(0, begin) + table + page.substr(end));
  EXPECT_EQ(page.substr(begin, end - begin), table) << kRemedy;
}

TEST(OpenApi, DescribesEachTrainingFigureOfATrial) {
  const auto page = PageJson::parse(OpenApiText());
  const auto& figures = page.at("components").at("schemas").at("Trial").at("properties");
  for (const FigureRow& row : kFigureRows) {
    EXPECT_TRUE(figures.contains(std::string(row.name))) << row.name;
  }
}

}  // namespace
}  // namespace espalier
