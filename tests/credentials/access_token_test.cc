#include "tuner/credentials/access_token.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/credentials/roles.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(AccessToken, ReadsWhatItWrites) {
  const AccessToken token = NewAccessToken(std::string(64, 'a'));
  const auto read = ParseAccessToken(token.text());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->id, token.id);
  EXPECT_EQ(read->secret, token.secret);
  EXPECT_EQ(read->certificate_hash, std::string(64, 'a'));
  EXPECT_EQ(PinOf(token.text()), std::string(64, 'a'));

  const AccessToken open = NewAccessToken("");
  EXPECT_EQ(ParseAccessToken(open.text())->secret, open.secret);
  EXPECT_EQ(PinOf(open.text()), "");
}

TEST(AccessToken, NoTwoAreAlike) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(NewAccessToken("").secret);
  EXPECT_EQ(seen.size(), 100u);
}

TEST(AccessToken, RefusesHalfOfOneAndDoesNotRepeatIt) {
  const std::string whole = NewAccessToken("").text();
  for (const std::string& bad : {whole.substr(0, whole.size() - 1), whole + "0", whole + ".",
                                 std::string("esp1.x.y"), std::string("esp1"), whole + ".00"}) {
    const auto read = ParseAccessToken(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << bad;
    EXPECT_THAT(std::string(read.status().message()), Not(HasSubstr(whole.substr(14, 20))));
  }
  EXPECT_FALSE(LooksLikeAccessToken("esp12"));
  EXPECT_FALSE(LooksLikeAccessToken("a word"));
  EXPECT_EQ(PinOf("a word"), "");
}

TEST(Roles, EachMayWhatItsNameSays) {
  for (const Role role : {Role::kAdminister, Role::kSubmit, Role::kView, Role::kAgent}) {
    EXPECT_EQ(*ParseRole(RoleName(role)), role);
    EXPECT_TRUE(Allows(role, Role::kNobody));
    EXPECT_TRUE(Allows(role, role));
    EXPECT_TRUE(Allows(Role::kAdminister, role));
  }
  EXPECT_TRUE(Allows(Role::kSubmit, Role::kView));
  EXPECT_FALSE(Allows(Role::kView, Role::kSubmit));
  EXPECT_FALSE(Allows(Role::kSubmit, Role::kAdminister));
  EXPECT_FALSE(Allows(Role::kSubmit, Role::kAgent));
  EXPECT_FALSE(Allows(Role::kAgent, Role::kView));
  EXPECT_FALSE(Allows(Role::kTrial, Role::kView));
  EXPECT_FALSE(Allows(Role::kNobody, Role::kView));
  EXPECT_THAT(std::string(ParseRole("root").status().message()), HasSubstr("administer"));
  EXPECT_FALSE(ParseRole("nobody").ok());
  EXPECT_FALSE(ParseRole("trial").ok());
}

TEST(Hexadecimal, KnownHashAndEqualTexts) {
  EXPECT_EQ(HashOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(SameText("secret", "secret"));
  EXPECT_FALSE(SameText("secret", "secreT"));
  EXPECT_FALSE(SameText("secret", "secret2"));
  EXPECT_FALSE(IsHexadecimal("ABCD", 4));
}

}  // namespace
}  // namespace espalier
