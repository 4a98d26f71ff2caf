// What strangers may spend by guessing tokens and cookies.

#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/server/patient_client.h"
#include "tuner/server/http/http_connections.h"

namespace espalier {
namespace {

// Those who show nothing, and those who show what is good, are answered beside them.
TEST(HttpGuesses, ThoseThatTakeTooMuchAreClosedUnanswered) {
  const auto server =
      MakeHttpServer(nullptr, {.knows = [](const std::string& shown) { return shown == "known"; },
                               .guesses = 1e-9,
                               .guesses_saved_s = 1e-9});
  server->Get(".*", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("answered", "text/plain");
  });
  const int port = server->bind_to_any_port("127.0.0.1");
  std::thread serving([&server] { server->listen_after_bind(); });
  while (!server->is_running()) std::this_thread::yield();
  const auto answers = [port](const httplib::Headers& headers) {
    return static_cast<bool>(PatientClient(port).Get("/", headers));
  };
  // What one has taken is known after its answer.
  while (answers({{"Authorization", "guess"}})) {
  }
  for (const char* guess : {"Authorization", "Cookie"}) {
    EXPECT_FALSE(answers({{guess, "guess"}})) << guess;
  }
  EXPECT_TRUE(answers({}));
  EXPECT_TRUE(answers({{"Authorization", "known"}}));
  server->stop();
  serving.join();
}

}  // namespace
}  // namespace espalier
