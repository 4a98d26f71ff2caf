#pragma once

#include <string_view>

namespace espalier {

// What decides, before a library reads a request, which threads serve it.
struct HttpHead {
  std::string_view method;
  std::string_view target;
  std::string_view authorization;  // the header's value; empty: none
  std::string_view cookie;         // likewise
};

// Whether everybody reads the same headers in the text of a head, from its request line to its last
// line: each has a name, a colon behind it, and a line of its own, and a length has a value (RFC
// 9112, 2.2, 5.1 and 5.2). The library passes over other lines, which a proxy before it may take
// for a length or for chunks.
bool HasPlainHeaders(std::string_view text);

// Of the text of a request's head: empty where it is none.
HttpHead ReadHttpHead(std::string_view text);

}  // namespace espalier
