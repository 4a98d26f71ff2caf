#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tuner/credentials/certificate.h"

struct ssl_ctx_st;

namespace espalier {

// Stands for a service at a free port of 127.0.0.1: sends back what comes on each connection, until
// the client has said all; with a certificate over TLS.
class TestService {
 public:
  explicit TestService(const Certificate* certificate = nullptr);
  ~TestService();  // closes its connections

  const std::string& address() const { return address_; }
  int connections() const { return seen_; }   // that there were
  int most_at_once() const { return most_; }  // of them
  std::string begun_with() const;             // the first bytes of the newest

 private:
  void Accept();
  void Echo(int client);

  ssl_ctx_st* tls_ = nullptr;
  int listener_ = -1;
  int stop_ = -1;
  std::string address_;
  std::atomic<int> seen_ = 0;
  std::atomic<int> now_ = 0;
  std::atomic<int> most_ = 0;
  mutable std::mutex mutex_;
  std::string begun_with_;
  std::list<std::thread> threads_;
  std::thread acceptor_;
};

// A client's blocking socket at HOST:PORT of loopback; -1: refused.
int ConnectToLoopback(const std::string& address);
bool SendAll(int socket, const std::string& bytes);
// Until the other end has said all, or so many bytes have come.
std::string ReceiveAll(int socket, std::size_t most = SIZE_MAX);

}  // namespace espalier
