#include "tuner/server/http/http_head.h"

#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(HttpHead, IsReadWithoutItsBody) {
  const HttpHead head = ReadHttpHead(
      "PUT /a/b?c HTTP/1.1\r\nX: y\r\nauthorization:  Bearer w \r\nCookie: a=b; "
      "c=d\r\n\r\nAuthorization: Bearer "
      "z\r\n");
  EXPECT_EQ(head.method, "PUT");
  EXPECT_EQ(head.target, "/a/b?c");
  EXPECT_EQ(head.authorization, "Bearer w");
  EXPECT_EQ(head.cookie, "a=b; c=d");
  for (const char* text : {"", "\r\n", "GET", "GET \r\nAuthorization", "\r\nAuthorization:"}) {
    EXPECT_EQ(ReadHttpHead(text).authorization, "") << text;
  }
}

}  // namespace
}  // namespace espalier
