#include "tuner/credentials/openssl_turn.h"

#include <pthread.h>

#include <mutex>

#include "base/check.h"

namespace espalier {
namespace {

std::mutex& Turns() {
  static std::mutex turns;
  static const int registered =
      pthread_atfork([] { Turns().lock(); }, [] { Turns().unlock(); }, [] { Turns().unlock(); });
  ESPALIER_CHECK(registered == 0, "memory for the handlers of a fork");
  return turns;
}

}  // namespace

OpenSslTurn::OpenSslTurn() { Turns().lock(); }

OpenSslTurn::~OpenSslTurn() { Turns().unlock(); }

}  // namespace espalier
