#pragma once

#include <string>
#include <vector>

#include "tuner/messages/replica_messages.h"

namespace espalier {

// How an attempt to speak to the rendezvous server of another replica ended.
struct ContactAttempt {
  Contact contact = Contact::kUnknown;
  std::string error;  // the system's error text; empty: it answered
};

// Connects to every address (host:port) at once and asks its server for an answer, for at most
// `limit_s`. This tells a refusal, a silent machine and a process that does not answer apart. The
// results are in the order of the addresses. Any thread may call it.
std::vector<ContactAttempt> TryContacts(const std::vector<std::string>& addresses, double limit_s);

}  // namespace espalier
