// Routes of the HTTP endpoint: the operations of the table in tuner/api/operations.h.

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "google/protobuf/descriptor.h"
#include "tuner/api/operations.h"
#include "tuner/api/trial_output.h"
#include "tuner/server/http/http_message.h"
#include "tuner/server/http/http_routes.h"
#include "tuner/server/http/output_cursor.h"

namespace espalier {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The Idempotency-Key.
constexpr char kRequestKey[] = "request_key";

// The field that a name of the path stands for: see api::OperationFacts.
const FieldDescriptor& FieldOf(const Message& request, const std::string& name) {
  const FieldDescriptor* field = request.GetDescriptor()->FindFieldByName(name);
  if (field == nullptr) field = request.GetDescriptor()->FindFieldByName("name");
  ESPALIER_CHECK(field != nullptr, absl::StrCat("a request without a field \"", name, "\""));
  return *field;
}

// Sets the fields that path and headers give.
absl::Status SetElsewhere(const HttpCall& call, Message& request) {
  for (const auto& [name, value] : call.path) {
    const FieldDescriptor& field = FieldOf(request, name);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
      ESPALIER_ASSIGN_OR_RETURN(const std::int64_t id, TrialIdOf(call));
      request.GetReflection()->SetInt64(&request, &field, id);
    } else {
      request.GetReflection()->SetString(&request, &field, value);
    }
  }
  const FieldDescriptor* key = request.GetDescriptor()->FindFieldByName(kRequestKey);
  if (key != nullptr) request.GetReflection()->SetString(&request, key, call.request_key);
  return absl::OkStatus();
}

// What path, headers and body say. Where path and headers say all, no body is read.
absl::Status ReadRequest(const HttpCall& call, Message& request) {
  ESPALIER_RETURN_IF_ERROR(SetElsewhere(call, request));
  std::vector<std::string_view> elsewhere;
  for (const auto& [name, value] : call.path) elsewhere.push_back(FieldOf(request, name).name());
  const FieldDescriptor* key = request.GetDescriptor()->FindFieldByName(kRequestKey);
  if (key != nullptr) elsewhere.push_back(key->name());
  if (std::ssize(elsewhere) == request.GetDescriptor()->field_count()) return absl::OkStatus();
  return ReadBody(call, request, elsewhere);
}

v1::GetStudyRequest Wanted(const HttpCall& call) {
  v1::GetStudyRequest wanted;
  wanted.set_name(call.path.at("study"));
  wanted.set_active_only(Flag(call, "active", false));
  wanted.set_without_values(!Flag(call, "values", true));
  return wanted;
}

// The body is a study file.
HttpAnswer Create(const HttpCall& call) {
  v1::CreateStudyRequest request;
  request.set_study_json(call.body);
  request.set_directory("/");
  request.set_exist_ok(Flag(call, "exist_ok", false));
  request.set_request_key(call.request_key);
  const auto created = api::CreateOrFindStudy(call.tuner, request);
  if (!created.ok()) return ToAnswer(created.status());
  constexpr int kCreated = 201;
  return ToAnswer(absl::StatusOr<v1::Study>(created->study), created->existed ? 200 : kCreated);
}

HttpAnswer ShowStudy(const HttpCall& call) {
  return ToAnswer(api::GetStudy(call.tuner, Wanted(call)));
}

HttpAnswer ShowTrials(const HttpCall& call) {
  const auto details = api::GetStudy(call.tuner, Wanted(call));
  if (!details.ok()) return ToAnswer(details.status());
  std::string json = "{\"trials\":[";
  for (const v1::Trial& trial : details->trials()) {
    if (json.back() != '[') json += ',';
    json += MessageToJson(trial);
  }
  return {absl::OkStatus(), json + "]}"};
}

// The trial is named by its id, as everywhere in HTTP.
HttpAnswer Pin(const HttpCall& call) {
  v1::PinTrialRequest request;
  const absl::StatusOr<std::int64_t> id = TrialIdOf(call);
  if (!id.ok()) return ToAnswer(id.status());
  const absl::Status read = ReadBody(call, request, {"study", "trial_number"});
  if (!read.ok()) return ToAnswer(read);
  v1::TrialId trial;
  trial.set_trial_id(*id);
  const absl::StatusOr<v1::TrialRecord> found = api::GetTrial(call.tuner, trial);
  if (!found.ok()) return ToAnswer(found.status());
  request.set_study(found->study());
  request.set_trial_number(found->number());
  return ToAnswer(api::PinTrial(call.tuner, request));
}

HttpAnswer ShowOutput(const HttpCall& call) {
  v1::TrialOutputRequest request;
  const absl::StatusOr<std::int64_t> id = TrialIdOf(call);
  if (!id.ok()) return ToAnswer(id.status());
  request.set_trial_id(*id);
  if (const auto rank = call.query.find("rank"); rank != call.query.end()) {
    std::int32_t number = 0;
    if (!absl::SimpleAtoi(rank->second, &number)) {
      return ToAnswer(absl::InvalidArgumentError(
          absl::StrCat("rank \"", rank->second, "\": needs the number of a rank, from 0")));
    }
    request.set_rank(number);
  }
  absl::StatusOr<api::OutputText> output = api::ReadTrialOutput(call.tuner, request);
  if (!output.ok()) return ToAnswer(output.status());
  HttpAnswer answer{absl::OkStatus(), std::move(output->text), "text/plain; charset=utf-8"};
  if (!output->grows_at_its_end) return answer;
  const auto after = call.query.find("after");
  const TextFromCursor from =
      FollowFrom(after == call.query.end() ? "" : after->second, answer.body);
  const std::size_t start = from.start.value_or(0);
  answer.headers = {{"X-Start", absl::StrCat(start)}, {"X-Next", from.next}};
  answer.body.erase(0, start);
  return answer;
}

// Operations whose request is not what path and body say, or whose answer is no JSON.
using AnswerCall = HttpAnswer (*)(const HttpCall& call);
const std::map<std::string_view, AnswerCall>& OwnAnswers() {
  static const auto* const answers = new std::map<std::string_view, AnswerCall>{
      {api::OperationName<api::CreateStudy>(), Create},
      {api::OperationName<api::GetStudy>(), ShowStudy},
      {api::OperationName<api::PinTrial>(), Pin},
      {api::OperationName<api::GetTrialOutput>(), ShowOutput}};
  return *answers;
}

// The keys of their queries; other operations have none.
QueryKeys QueryOf(std::string_view operation) {
  static const auto* const keys = new std::map<std::string_view, QueryKeys>{
      {api::OperationName<api::CreateStudy>(), {"exist_ok"}},
      {api::OperationName<api::GetStudy>(), {"active", "values"}},
      {api::OperationName<api::GetTrialOutput>(), {"rank", "after"}}};
  const auto found = keys->find(operation);
  return found == keys->end() ? QueryKeys() : found->second;
}

// Keeps no thread while it waits.
template <typename Request, typename Response>
HttpAnswer StartedLater(const api::Operation<Request, Response>& row, Tuner& tuner,
                        Request request) {
  HttpAnswer answer;
  answer.later = [&row, &tuner,
                  request = std::move(request)](std::function<void(HttpAnswer)> done) {
    return row.start(tuner, request,
                     [done = std::move(done)](const absl::StatusOr<Response>& response) {
                       done(ToAnswer(response));
                     });
  };
  return answer;
}

template <typename Request, typename Response>
HttpRoute RouteOf(const api::Operation<Request, Response>& row) {
  const std::string_view http = row.http;
  const std::size_t space = http.find(' ');
  HttpRoute route{http.substr(0, space), http.substr(space + 1), row.name, nullptr};
  route.query = QueryOf(row.name);
  route.waits = row.waits && row.start == nullptr;
  if (const auto own = OwnAnswers().find(row.name); own != OwnAnswers().end()) {
    route.answer = own->second;
  } else {
    route.answer = [&row](const HttpCall& call) {
      Request request;
      const absl::Status read = ReadRequest(call, request);
      if (read.ok() && row.start != nullptr)
        return StartedLater(row, call.tuner, std::move(request));
      return read.ok() ? ToAnswer(row.run(call.tuner, request)) : ToAnswer(read);
    };
  }
  return route;
}

}  // namespace

std::vector<HttpRoute> OperationRoutes() {
  std::vector<HttpRoute> routes = {{.method = "GET",
                                    .path = "/api/studies/{study}/trials",
                                    .operation = "GetTrials",
                                    .answer = ShowTrials,
                                    .query = QueryOf(api::OperationName<api::GetStudy>())}};
  api::ForEachOperation([&routes](const auto& row) {
    if (*row.http != '\0') routes.push_back(RouteOf(row));
  });
  return routes;
}

}  // namespace espalier
