// What guards the endpoints: addresses and tokens.

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuner/credentials/access_token.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/server/access/access_control.h"
#include "tuner/server/access/listen_address.h"

namespace espalier {
namespace {

using testing::HasSubstr;

TEST(ListenAddress, ReadsHostAndPort) {
  EXPECT_EQ(ParseListenAddress("127.0.0.1:7077")->port, 7077);
  EXPECT_EQ(ParseListenAddress("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseListenAddress("[::1]:5")->text(), "[::1]:5");
  for (const char* bad :
       {"", "7077", ":7077", "host:", "host:x", "host:70000", "host:-1", "::1:5", "host:1 "}) {
    const auto parsed = ParseListenAddress(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << bad;
  }
}

TEST(ListenAddress, KnowsLoopback) {
  for (const char* near : {"127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"}) {
    EXPECT_TRUE(ParseListenAddress(near)->loopback()) << near;
  }
  for (const char* far : {"0.0.0.0:1", "192.168.0.1:1", "example.org:1", "[::]:1"}) {
    EXPECT_FALSE(ParseListenAddress(far)->loopback()) << far;
  }
}

TEST(CheckFree, SaysWhichAddressIsNotOfThisMachine) {
  EXPECT_TRUE(CheckFree({"127.0.0.1", 0}).ok());
  const absl::Status status = CheckFree({"192.0.2.1", 7077});
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("192.0.2.1:7077"));
}

constexpr char kSubmit[] = "/espalier.v1.Tuner/CreateStudy";
constexpr char kView[] = "GET /api/studies";
constexpr char kTell[] = "/espalier.v1.Tuner/Tell";

// The access control of a pool with one token of each role, and one that has ended in two ways.
class AccessControlTest : public testing::Test {
 protected:
  AccessControlTest() : access_({.trial_key = "key", .clock = [] { return Time{1000}; }}) {
    for (const char* role : {"administer", "submit", "view", "agent"}) Keep(role, role);
    expired_ = Keep("expired", "administer", Time{999});
    removed_ = Keep("removed", "administer", {}, Time{5});
  }

  std::string Keep(const std::string& name, const std::string& role, Time expires = {},
                   Time removed = {}) {
    const AccessToken token = NewAccessToken("");
    access_.Take(
        {TokenKept{{token.id, HashOf(token.secret), role, name, Time{1}, expires, removed}}});
    return tokens_[name] = token.text();
  }

  std::string MessageFor(const std::string& call, const std::string& token) const {
    return std::string(access_.Admit(call, {false, token}).message());
  }
  absl::StatusCode CodeFor(const std::string& call, const std::string& token) const {
    return access_.Admit(call, {false, token}).code();
  }

  AccessControl access_;
  std::map<std::string, std::string> tokens_;
  std::string expired_, removed_;
};

TEST_F(AccessControlTest, EachRoleOpensWhatTheTableSays) {
  for (const Permission& row : Permissions()) {
    const std::string call(row.call);
    for (const char* role : {"administer", "submit", "view", "agent"}) {
      const bool opens = Allows(*ParseRole(role), row.needed);
      EXPECT_EQ(CodeFor(call, tokens_[role]),
                opens ? absl::StatusCode::kOk : absl::StatusCode::kPermissionDenied)
          << role << " " << call;
    }
    const auto closed =
        row.needed == Role::kNobody ? absl::StatusCode::kOk : absl::StatusCode::kUnauthenticated;
    for (const std::string& bad :
         {std::string(), std::string("word"), NewAccessToken("").text(), expired_, removed_}) {
      EXPECT_EQ(CodeFor(call, bad), closed) << call << " with " << bad;
    }
    EXPECT_TRUE(access_.Admit(call, {true, ""}).ok());
  }
  EXPECT_EQ(CodeFor("/espalier.v1.Tuner/Unknown", tokens_["submit"]),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(AccessControlTest, ATokenDecidesAlsoWhereTheOwnUserShowsIt) {
  const auto code_for = [this](const std::string& call, const std::string& token) {
    return access_.Admit(call, {true, token}).code();
  };
  EXPECT_EQ(code_for(kView, tokens_["view"]), absl::StatusCode::kOk);
  EXPECT_EQ(code_for(kSubmit, tokens_["view"]), absl::StatusCode::kPermissionDenied);
  for (const std::string& bad :
       {std::string("word"), NewAccessToken("").text(), expired_, removed_}) {
    EXPECT_EQ(code_for(kView, bad), absl::StatusCode::kUnauthenticated) << bad;
  }
  const std::string trial = access_.TrialToken(TrialId(3), ReplicaId(17), "");
  EXPECT_EQ(code_for(kTell, trial), absl::StatusCode::kOk);
  EXPECT_EQ(code_for(kSubmit, trial), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code_for(kSubmit, ""), absl::StatusCode::kOk);
  EXPECT_THAT(std::string(access_.Admit(kView, {true, removed_}).message()),
              testing::AllOf(HasSubstr("tuner token rm"),
                             HasSubstr("as the service's own user you need none")));
  EXPECT_THAT(MessageFor(kView, removed_), testing::Not(HasSubstr("own user you need none")));
}

TEST_F(AccessControlTest, TheOwnUserIsToldWhatThisServiceNeeds) {
  const AccessControl with_tls(AccessControlOptions{.own_token_file = "/pool/administer.token"});
  const std::string foreign = NewAccessToken("").text();
  EXPECT_THAT(std::string(with_tls.Admit(kView, {true, foreign}).message()),
              testing::AllOf(HasSubstr("show the one in /pool/administer.token"),
                             testing::Not(HasSubstr("you need none"))));
  EXPECT_THAT(std::string(with_tls.Admit(kView, {false, foreign}).message()),
              testing::Not(HasSubstr("administer.token")));
}

TEST_F(AccessControlTest, NoMessageHasTheInternalNameOfACall) {
  for (const std::string& call : {std::string(kSubmit), std::string("/espalier.v1.Tuner/NoSuch")}) {
    for (const bool own_user : {false, true}) {
      const std::string message(access_.Admit(call, {own_user, tokens_["view"]}).message());
      EXPECT_THAT(message,
                  testing::AllOf(HasSubstr("token view"), testing::Not(HasSubstr("espalier.v1"))));
    }
  }
}

TEST_F(AccessControlTest, SaysWhatIsWrongAndWhatToDo) {
  EXPECT_THAT(MessageFor(kView, ""), HasSubstr("needs its token"));
  EXPECT_THAT(MessageFor(kView, NewAccessToken("").text()), HasSubstr("another pool"));
  EXPECT_THAT(MessageFor(kView, expired_), HasSubstr("ended on 1970-01-01"));
  EXPECT_THAT(MessageFor(kView, removed_), HasSubstr("tuner token rm"));
  EXPECT_THAT(MessageFor(kSubmit, tokens_["view"]),
              testing::AllOf(HasSubstr("has the role view"), HasSubstr("needs submit")));
  EXPECT_THAT(MessageFor(kView, tokens_["view"].substr(0, 30)), HasSubstr("not whole"));
  for (const std::string& token : {expired_, removed_, tokens_["view"]}) {
    const std::string secret = token.substr(14);
    EXPECT_THAT(MessageFor(kSubmit, token), testing::Not(HasSubstr(secret)));
  }
}

TEST_F(AccessControlTest, ATokenIsGoodUntilItIsEnded) {
  const std::string token = Keep("late", "view");
  EXPECT_TRUE(access_.Admit(kView, {false, token}).ok());
  const auto id = ParseAccessToken(token)->id;
  access_.Take({TokenKept{
      {id, HashOf(ParseAccessToken(token)->secret), "view", "late", Time{1}, Time{}, Time{900}}}});
  EXPECT_EQ(CodeFor(kView, token), absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, TheIdOfOneTokenDoesNotHelpTheSecretOfAnother) {
  AccessToken mixed = *ParseAccessToken(tokens_["administer"]);
  mixed.secret = ParseAccessToken(tokens_["view"])->secret;
  EXPECT_EQ(CodeFor(kView, mixed.text()), absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, EveryGroupHasASecretOfItsOwnThatOutlastsARestart) {
  const Membership group{
      2, {{ReplicaId(5), NodeId(1), "a:1"}, {ReplicaId(6), NodeId(2), "b:1"}}, false};
  const std::string secret = access_.GroupSecret(group);
  EXPECT_EQ(secret, access_.GroupSecret(group));
  EXPECT_EQ(secret, AccessControl({.trial_key = "key"}).GroupSecret(group));
  EXPECT_NE(secret, AccessControl({.trial_key = "another"}).GroupSecret(group));
  EXPECT_NE(AccessControl({}).GroupSecret(group), AccessControl({}).GroupSecret(group));
  Membership next = group;
  next.generation = 3;
  Membership others = group;
  others.members[1].replica = ReplicaId(7);
  Membership elsewhere = group;
  elsewhere.members[1].address = "b:2";
  for (const Membership& other : {next, others, elsewhere}) {
    EXPECT_NE(secret, access_.GroupSecret(other));
  }
}

TEST_F(AccessControlTest, TrialsHaveTokensThatOnlyTheServiceCanMake) {
  const std::string token = access_.TrialToken(TrialId(3), ReplicaId(17), "");
  EXPECT_EQ(access_.TrialOf(token), TrialId(3));
  EXPECT_TRUE(access_.Admit(kTell, {false, token}).ok());
  EXPECT_EQ(CodeFor(kSubmit, token), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeFor(kView, token), absl::StatusCode::kPermissionDenied);
  AccessToken forged = *ParseAccessToken(token);
  forged.id = "trial-4-17";
  EXPECT_EQ(CodeFor(kTell, forged.text()), absl::StatusCode::kUnauthenticated);
  const AccessControl other(AccessControlOptions{});
  EXPECT_EQ(other.Admit(kTell, {false, token}).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(access_.TrialOf(tokens_["view"]), std::nullopt);
}

TEST(AccessControl, AWordIsToBeShownByEverybody) {
  const AccessControl access({.shared_token = "secret"});
  EXPECT_FALSE(access.Trusts({PeerKind::kOwnUser, {}, ""}));
  EXPECT_TRUE(access.Admit(kSubmit, {false, "secret"}).ok());
  for (const char* bad : {"", "secre", "secrets", "Secret", "secretsecret"}) {
    EXPECT_TRUE(absl::IsUnauthenticated(access.Admit(kView, {false, bad}))) << bad;
  }
  EXPECT_EQ(BearerToken("Bearer secret"), "secret");
  EXPECT_EQ(BearerToken("bearer secret"), "");
  EXPECT_EQ(BearerToken("Basic secret"), "");
}

// So that a long guess costs no digest of it.
TEST(AccessControl, AWordThatIsTooLongIsNone) {
  const std::string most(kMaxTokenBytes, 'x');
  const std::string longer = most + "x";
  EXPECT_TRUE(AccessControl({.shared_token = most}).Knows(most));
  const AccessControl access({.shared_token = longer});
  EXPECT_FALSE(access.Knows(longer));
  EXPECT_EQ(access.Admit(kView, {false, longer}).message(),
            "a token has at most 8192 bytes, and what is shown has 8193");
}

TEST(AccessControl, TrustsItsOwnUserAndOnLoopbackOthersWhereThatIsWanted) {
  const AccessControl closed(AccessControlOptions{});
  EXPECT_TRUE(closed.Trusts({PeerKind::kOwnUser, {}, ""}));
  EXPECT_FALSE(closed.Trusts({PeerKind::kOtherUser, {}, ""}));
  EXPECT_FALSE(closed.Trusts({PeerKind::kElsewhere, {}, ""}));
  const AccessControl open({.open_loopback = true});
  EXPECT_TRUE(open.Trusts({PeerKind::kOtherUser, {}, ""}));
  EXPECT_FALSE(open.Trusts({PeerKind::kElsewhere, {}, ""}));
  const AccessControl nobody({.no_loopback_trust = true});
  for (const PeerKind kind : {PeerKind::kOwnUser, PeerKind::kOtherUser, PeerKind::kElsewhere}) {
    EXPECT_FALSE(nobody.Trusts({kind, {}, ""}));
  }
}

}  // namespace
}  // namespace espalier
