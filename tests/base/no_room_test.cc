#include "tests/base/no_room.h"

#include <new>
#include <string>

#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(NoRoomFor, IsForSoManyBytesAndMoreAndForAsLongAsItLives) {
  constexpr std::size_t kMany = 1 << 20;
  {
    const NoRoomFor no_room(kMany);
    EXPECT_THROW(std::string(kMany, 'x'), std::bad_alloc);
    EXPECT_EQ(std::string(kMany / 2, 'x').size(), kMany / 2);
  }
  EXPECT_EQ(std::string(kMany, 'x').size(), kMany);
}

}  // namespace
}  // namespace espalier
