#pragma once

namespace espalier {

// Held while OpenSSL is called for more than arithmetic. A process that is forked meanwhile would
// keep the locks that OpenSSL had taken for ever, and stop at its first digest: a fork waits until
// nobody holds this, and nobody comes to hold it during a fork. Python forks DataLoader's workers
// while a replica's threads greet the members of its next group.
class OpenSslTurn {
 public:
  OpenSslTurn();
  ~OpenSslTurn();
  OpenSslTurn(const OpenSslTurn&) = delete;
  OpenSslTurn& operator=(const OpenSslTurn&) = delete;
};

}  // namespace espalier
