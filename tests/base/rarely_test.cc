#include "base/rarely.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace espalier {
namespace {

struct Label {
  std::string name;
  int step = -1;

  friend bool operator==(const Label&, const Label&) = default;
};

TEST(RarelyTest, IsAsTheTypeMakesItAtFirst) {
  const Rarely<Label> label;
  EXPECT_EQ(label->step, -1);
  EXPECT_EQ(*label, Label{});
  EXPECT_LE(sizeof(label), sizeof(void*));
}

TEST(RarelyTest, KeepsWhatDiffersForItselfAlone) {
  Rarely<Label> first = Label{"a", 3};
  Rarely<Label> second = first;
  second.edit().step = 4;
  EXPECT_EQ(first->step, 3);
  EXPECT_EQ(second->step, 4);
  first = second;
  EXPECT_EQ(first, second);
  const Rarely<Label>& self = first;
  first = self;
  EXPECT_EQ(first->step, 4);
  second = Label{};
  EXPECT_EQ(first->name, "a");
  EXPECT_EQ(second, Rarely<Label>());
}

TEST(RarelyTest, IsEqualByItsValue) {
  Rarely<Label> edited;
  edited.edit();
  EXPECT_EQ(edited, Rarely<Label>()) << "kept apart, and the same";
  const Rarely<Label> moved = std::move(edited);
  EXPECT_EQ(moved, Rarely<Label>());
}

}  // namespace
}  // namespace espalier
