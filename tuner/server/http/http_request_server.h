#pragma once

// Private to http_connections.cc: how one request of a connection is read and answered.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "httplib.h"
#include "tuner/server/http/http_connection.h"
#include "tuner/server/http/http_connections.h"
#include "tuner/server/http/http_packing.h"
#include "tuner/server/http/library_server.h"

namespace espalier {

// The library's server, as far as it reads a request whose head has come, and answers it. Any
// number of threads, one for each connection.
class HttpRequestServer : public LibraryServer {
 public:
  HttpRequestServer() {
    set_post_routing_handler([](const httplib::Request& request, httplib::Response& response) {
      PackAnswer(request, response);
    });
  }

  // What an answer says instead of being one, by name: see kStreamHeader and kLaterHeader.
  struct NoAnswer {
    std::string stream;
    std::string later;
  };

  // Whether the connection may be used for another request. False where there is no answer yet.
  bool ServeOne(HttpConnection& connection, NoAnswer& none) {
    connection.KeepHead();
    const bool goes_on = ServeNext(connection, "", &none);
    if (none.later.empty()) connection.ForgetHead();
    return goes_on;
  }
  // The same request once more, when its answer of this name is there.
  bool ServeLater(HttpConnection& connection, const std::string& later) {
    connection.ReadHeadAgain();
    return ServeNext(connection, later, nullptr);
  }

 protected:
  static constexpr char kBearer[] = "Bearer ";

  // See HttpDoor::session.
  virtual std::string SessionOf(std::string_view /*cookies*/) const { return ""; }

 private:
  bool ServeNext(HttpConnection& connection, const std::string& later, NoAnswer* none) {
    connection.BeginRequest();
    bool closed = false;
    const bool answered =
        ProcessRequest(connection, closed, [this, &connection, &later](httplib::Request& request) {
          request.headers.erase(kOwnUserHeader);
          request.headers.erase(kBySessionHeader);
          request.headers.erase(kLaterHeader);
          if (!later.empty()) NameAnswer(later, request);
          if (connection.own_user()) request.headers.emplace(kOwnUserHeader, "1");
          if (!connection.own_user()) ShowSession(request);
          BeginBody(request, connection);
          TakeNoRanges(request);
          TakeNoForms(request);
          RenameAcceptEncoding(request);
        });
    if (none != nullptr) {
      none->stream = connection.TakeNamed(kStreamHeader);
      none->later = connection.TakeNamed(kLaterHeader);
      if (!none->stream.empty() || !none->later.empty()) return false;
    }
    return connection.FinishRequest() && answered && !closed;
  }

  // Its body has been read.
  static void NameAnswer(const std::string& later, httplib::Request& request) {
    for (const char* of_body : {"Content-Length", "Content-Type", "Transfer-Encoding", "Expect"}) {
      request.headers.erase(of_body);
    }
    request.headers.emplace(kLaterHeader, later);
  }

  void ShowSession(httplib::Request& request) const {
    if (request.has_header("Authorization")) return;
    const std::string token = SessionOf(request.get_header_value("Cookie"));
    if (token.empty()) return;
    request.headers.emplace("Authorization", kBearer + token);
    request.headers.emplace(kBySessionHeader, "1");
  }

  // The library reads all of a body that is too large; of one in chunks it counts nothing; and of
  // one without a length it reads what comes until the connection ends: there is none.
  void BeginBody(httplib::Request& request, HttpConnection& connection) const {
    const std::uint64_t most = std::max<std::uint64_t>(kMaxSkippedBody, payload_max_length_);
    if (request.has_header("Transfer-Encoding")) {
      connection.BeginBody(payload_max_length_ + kMaxChunkHeads);
      return;
    }
    connection.BeginBody(most);
    if (!request.has_header("Content-Length")) {
      request.headers.emplace("Content-Length", "0");
    } else if (ContentLength(request) > most) {
      connection.RefuseRest();
    }
  }

  // Many ranges would multiply what they are of. And the library cuts whatever is answered, errors
  // too, and calls the piece the whole (200) where a handler has set the status.
  static void TakeNoRanges(httplib::Request& request) {
    request.ranges.clear();
    request.headers.erase("Range");
  }

  // Bodies are JSON, but curl and urllib call them forms if nobody tells them otherwise. The
  // library would take only 8 KiB of a form, and read it as if it were the query of the URL.
  static void TakeNoForms(httplib::Request& request) {
    if (request.get_header_value("Content-Type").starts_with("application/x-www-form-urlencoded")) {
      request.headers.erase("Content-Type");
    }
  }

  static void RenameAcceptEncoding(httplib::Request& request) {
    const std::string accepted = request.get_header_value("Accept-Encoding");
    request.headers.erase("Accept-Encoding");
    request.headers.erase(kAcceptEncodingHeader);
    if (!accepted.empty()) request.headers.emplace(kAcceptEncodingHeader, accepted);
  }

  static constexpr std::uint64_t kMaxSkippedBody = 8 << 20;  // of one that is refused
  static constexpr std::size_t kMaxChunkHeads = 64 << 10;  // of one in chunks, besides what it says
};

}  // namespace espalier
