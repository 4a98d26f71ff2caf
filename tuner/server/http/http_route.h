#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tuner/api/operation.h"
#include "tuner/api/tuner.h"
#include "tuner/credentials/roles.h"
#include "tuner/server/http/stream_connection.h"

namespace espalier {

// One request, as its route sees it.
struct HttpCall {
  Tuner& tuner;                              // shows secrets to those who may see them
  std::map<std::string, std::string> path;   // by the names in HttpRoute::path, decoded
  std::map<std::string, std::string> query;  // of a name that is there several times, one
  std::string request_key;                   // header Idempotency-Key, without quotes around it
  const std::string& body;
  std::string service_url;        // where the client has reached the service, without a path
  std::string accept_encoding{};  // header Accept-Encoding
  std::string last_event_id{};    // header Last-Event-ID: how far a stream that broke had come
  std::string base{};             // from the request's path to where the service's begin: "../../"
  Role role = Role::kNobody;      // what the caller may do
  std::string target{};           // as the request line has it
  std::string token{};            // that the client shows, or its session stands for; empty: none
  std::string cookies{};          // header Cookie
  std::string code{};             // that begins a session; `token` is what it stands for
};

struct HttpAnswer {
  absl::Status status;  // where it is not OK, the rest says nothing
  std::string body;
  const char* type = "application/json";
  int code = 200;
  std::vector<std::pair<std::string, std::string>> headers{};  // besides the usual ones
  // Not null: goes on with the answer, whose head it sends too; the rest here says nothing.
  TakeStream stream{};
  // Its header "ETag" (entity_tag.h): who shows that it has this answer already is not sent it
  // again. Empty: it has none.
  std::string tag{};
  // Not null: begins what the answer has to wait for, and calls `done` with the answer itself, once
  // and from any thread; no thread is kept meanwhile. What it returns is called if the client hangs
  // up before, and leads to `done` soon; it may be null. The rest here says nothing. Outlives the
  // call.
  std::function<api::TakeBack(std::function<void(HttpAnswer)> done)> later{};
};

// What a query may say: "?from=1" has the key "from".
using QueryKeys = std::vector<std::string_view>;

// The row "METHOD PATH" of the table of permissions (tuner/server/access/permissions.h) says which
// roles may call it; without a row only administrators may.
struct HttpRoute {
  std::string_view method;
  std::string_view path;  // "/api/things/{name}"
  const char* operation;  // the name under which it is counted
  // Called from many threads at once.
  std::function<HttpAnswer(const HttpCall& call)> answer;
  // A query with other keys is refused; none: whatever its clients send is taken.
  std::optional<QueryKeys> query{};
  // Of a call that needs no role: what else opens it, such as a secret in its path, looked at
  // before the body is read. Null: nothing, and no body of a stranger is read.
  std::function<absl::Status(const HttpCall& call)> open{};
  // The last name in `path` stands for all that follows, of any number of segments, or of none.
  bool below = false;
  // A code that `tuner open` has handed to a browser lets in, too, as what it stands for.
  bool begins_session = false;
  // Its answer may take long, whatever the service does, and keeps a thread (HttpAnswer::later does
  // not): such calls have threads of their own.
  bool waits = false;
};

}  // namespace espalier
