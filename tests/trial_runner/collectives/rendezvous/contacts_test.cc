#include "trial_runner/collectives/rendezvous/contacts.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "trial_runner/collectives/rendezvous/rendezvous.h"

namespace espalier {
namespace {

// A socket that is bound on loopback, and never accepts anybody.
class Deaf {
 public:
  explicit Deaf(bool listens) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    socklen_t size = sizeof address_;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address_), &size);
    if (listens) {
      EXPECT_EQ(listen(socket_, 0), 0);
    }
  }
  ~Deaf() {
    for (const int caller : callers_) close(caller);
    close(socket_);
  }
  Deaf(const Deaf&) = delete;
  Deaf& operator=(const Deaf&) = delete;

  // From then on the system drops who knocks, as a firewall does.
  void FillUp() {
    for (int i = 0; i < 4; ++i) {
      callers_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)!connect(callers_.back(), reinterpret_cast<sockaddr*>(&address_), sizeof address_);
    }
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }

 private:
  sockaddr_in address_{};
  int socket_;
  std::vector<int> callers_;
};

TEST(Contacts, TellsAnsweredRefusedMuteAndSilentApart) {
  const auto server = RendezvousServer::Listen("127.0.0.1");
  ASSERT_TRUE(server.ok()) << server.status();
  const Deaf closed(/*listens=*/false);
  const Deaf hung(/*listens=*/true);
  Deaf dropping(/*listens=*/true);
  dropping.FillUp();
  // A busy machine's server takes its time.
  const std::vector<ContactAttempt> attempts =
      TryContacts({(*server)->address(), closed.address(), hung.address(), dropping.address()}, 4);
  ASSERT_EQ(attempts.size(), 4u);
  EXPECT_EQ(attempts[0].contact, Contact::kAnswered);
  EXPECT_EQ(attempts[0].error, "");
  EXPECT_EQ(attempts[1].contact, Contact::kRefused);
  EXPECT_EQ(attempts[1].error, "Connection refused");
  EXPECT_EQ(attempts[2].contact, Contact::kMute);
  EXPECT_EQ(attempts[3].contact, Contact::kSilent);
  EXPECT_EQ(attempts[3].error, "no answer within 4 s");
}

TEST(Contacts, OfNobodyAreNone) { EXPECT_TRUE(TryContacts({}, 1).empty()); }

TEST(Contacts, AnAddressThatIsNoneIsNotTried) {
  EXPECT_EQ(TryContacts({"nonsense"}, 1).at(0).contact, Contact::kUnknown);
}

}  // namespace
}  // namespace espalier
