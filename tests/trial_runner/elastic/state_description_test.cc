#include "trial_runner/elastic/state_description.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier {
namespace {

std::string Described(const std::vector<std::int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int64_t)};
}

bool IsForm(const std::vector<std::int64_t>& values) {
  const std::string bytes = Described(values);
  StateDescription from(bytes);
  const absl::StatusOr<TensorForm> form = from.Form();
  EXPECT_TRUE(form.ok() || absl::IsDataLoss(form.status())) << form.status();
  return form.ok();
}

TEST(StateDescription, ReadsTheFormOfATensor) {
  const std::string bytes = Described({6, 2, 3, 4, 1, 1, 3, -1, 7});
  StateDescription from(bytes);
  const absl::StatusOr<TensorForm> form = from.Form();
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->type, 6);
  EXPECT_EQ(form->shape, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(form->strides, (std::vector<std::int64_t>{1, 3}));
  EXPECT_FALSE(from.Form()->defined);
  EXPECT_EQ(*from.Integer(), 7);
  EXPECT_TRUE(absl::IsDataLoss(from.Integer().status())) << "nothing is left";
}

TEST(StateDescription, RefusesTensorsThatThereAreNot) {
  constexpr std::int64_t kHalf = std::int64_t{1} << 32;
  EXPECT_TRUE(IsForm({6, 0, 0}));
  EXPECT_TRUE(IsForm({6, 2, 0, kHalf, 0}));
  EXPECT_FALSE(IsForm({256 + 6, 0, 0})) << "a type that no byte holds";
  EXPECT_FALSE(IsForm({6, -1, 0})) << "less than no dimension";
  EXPECT_FALSE(IsForm({6, 1, -2, 0})) << "a negative extent";
  EXPECT_FALSE(IsForm({6, 2, kHalf, kHalf, 0})) << "more elements than can be counted";
  EXPECT_FALSE(IsForm({6, 1, 2, 1, -1})) << "a negative stride";
  EXPECT_FALSE(IsForm({6, kHalf, 1, 1})) << "more dimensions than are told of";
}

TEST(StateDescription, ATextIsWithinIt) {
  const std::string bytes = Described({2}) + "ab" + Described({-1});
  StateDescription from(bytes);
  EXPECT_EQ(*from.Text(), "ab");
  EXPECT_TRUE(absl::IsDataLoss(from.Text().status()));
}

}  // namespace
}  // namespace espalier
