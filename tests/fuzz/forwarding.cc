// What adds a token to the requests of a connection: HTTP/1.1 and, if the first byte is odd,
// HTTP/2.

#include <algorithm>
#include <memory>
#include <string>

#include "tests/fuzz/input.h"
#include "tuner/forwarding/added_token.h"

namespace espalier {
namespace {

const std::string kToken = "fuzz-token";

std::unique_ptr<AddedToken> Make(bool http2) {
  return http2 ? AddTokenToHttp2(kToken) : AddTokenToHttp1(kToken);
}

struct Passed {
  absl::Status status;
  std::string out;
};

Passed PassInPieces(bool http2, std::string_view in, std::size_t piece) {
  const std::unique_ptr<AddedToken> token = Make(http2);
  Passed passed;
  while (!in.empty() && passed.status.ok()) {
    passed.status = token->Pass(in.substr(0, piece), passed.out);
    in.remove_prefix(std::min(piece, in.size()));
  }
  return passed;
}

// A request that shows a token keeps it: what has gone through once does so as it is.
void CheckHttp1(const Passed& passed) {
  const Passed again = PassInPieces(false, passed.out, passed.out.size());
  ESPALIER_CHECK(again.status.ok(), "what is passed on is a request");
  ESPALIER_CHECK(again.out == passed.out, "with one token");
}

// What is added is whole frames; what is held back is the beginning of a frame's head.
void CheckHttp2(const Passed& passed, std::string_view in) {
  constexpr std::size_t kFrameHead = 9;
  const std::size_t added = kFrameHead + 3 + std::string_view("authorization").size() +
                            std::string_view("Bearer ").size() + kToken.size();
  ESPALIER_CHECK((passed.out.size() + kFrameHead - in.size()) % added <= kFrameHead,
                 "nothing but tokens is added");
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  std::string_view in = fuzz::TextOf(data, size);
  const std::uint8_t kind = fuzz::TakeByte(in);
  const bool http2 = (kind & 1) != 0;
  const Passed whole = PassInPieces(http2, in, in.size());
  const Passed pieces = PassInPieces(http2, in, 1U + (kind >> 1) % 16U);
  ESPALIER_CHECK(whole.status.ok() == pieces.status.ok(), "however a request comes in pieces");
  if (!whole.status.ok()) return 0;
  ESPALIER_CHECK(whole.out == pieces.out, "the same goes on");
  if (http2) {
    CheckHttp2(whole, in);
  } else {
    CheckHttp1(whole);
  }
  return 0;
}
