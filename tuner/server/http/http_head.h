#pragma once

#include <string_view>

namespace espalier {

// What decides, before a library reads a request, which threads serve it.
struct HttpHead {
  std::string_view method;
  std::string_view target;
  std::string_view authorization;  // the header's value; empty: none
};

// Of the text of a request's head: empty where it is none.
HttpHead ReadHttpHead(std::string_view text);

}  // namespace espalier
