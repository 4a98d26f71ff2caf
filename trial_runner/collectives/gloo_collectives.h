#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"

namespace espalier {

struct GlooOptions {
  // Address of this machine that the other replicas can reach; store and connections bind to it.
  std::string host = "127.0.0.1";
  // Network interface to bind to instead ("eth0"); empty: by `host`.
  std::string interface;
};

// Collectives over LibTorch's Gloo, for CPU memory. Each object serves a rendezvous store on a
// port of its own for as long as it lives.
//
// Gloo itself does not let go of a waiting operation when a member stops, so an abandoned group,
// with its threads and buffers, is left to a thread of its own that ends when Gloo does; a process
// that has abandoned groups should end by _exit. Gloo writes to sockets that a lost member has
// closed: SIGPIPE is ignored from here on, unless the program handles it.
absl::StatusOr<std::unique_ptr<Collectives>> MakeGlooCollectives(const GlooOptions& options);

}  // namespace espalier
