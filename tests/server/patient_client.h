#pragma once

#include "httplib.h"

namespace espalier {

inline constexpr int kPatience_s = 60;

// Clients that wait so long for an answer. The library's own patience, five seconds, ends on a
// machine that has no time for the service for as long.
template <typename Client>
class Patient : public Client {
 public:
  explicit Patient(int port) : Client("127.0.0.1", port) {
    this->set_read_timeout(kPatience_s);
    this->set_write_timeout(kPatience_s);
  }
};

using PatientClient = Patient<httplib::Client>;

}  // namespace espalier
