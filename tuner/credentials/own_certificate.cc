#include "tuner/credentials/own_certificate.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/private_files.h"

namespace espalier {
namespace {

constexpr double kRenewBefore_s = 30 * 86400.0;

// Where other machines reach this one now. A client that goes by a token's hash needs none.
void AddAddresses(std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(first, &freeifaddrs);
  for (const ifaddrs* one = first; one != nullptr && names.size() < kMost; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const int family = one->ifa_addr->sa_family;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* address = nullptr;
    if (family == AF_INET) address = &reinterpret_cast<sockaddr_in*>(one->ifa_addr)->sin_addr;
    if (family == AF_INET6) address = &reinterpret_cast<sockaddr_in6*>(one->ifa_addr)->sin6_addr;
    if (address == nullptr) continue;
    if (inet_ntop(family, address, text.data(), text.size()) == nullptr) continue;
    names.push_back(std::string("IP:") + text.data());
  }
}

// Names under which clients that know it from certificate.pem may call it (--tls-ca).
std::vector<std::string> OwnNames() {
  std::vector<std::string> names = {"DNS:localhost", "IP:127.0.0.1", "IP:::1"};
  AddAddresses(names);
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return names;
  const std::string name = host.data();
  const bool plain = !name.empty() && name.size() <= 63 &&
                     name.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789-.") == std::string::npos;
  if (plain && name != "localhost") names.push_back("DNS:" + name);
  return names;
}

}  // namespace

absl::StatusOr<OwnCertificate> KeepOwnCertificate(const std::string& folder) {
  namespace fs = std::filesystem;
  ESPALIER_RETURN_IF_ERROR(KeepPrivateFolders(folder));
  OwnCertificate own{
      (fs::path(folder) / "certificate.pem").string(), (fs::path(folder) / "key.pem").string(), {}};
  std::error_code error;
  if (fs::exists(own.certificate_file, error) && fs::exists(own.key_file, error)) {
    const std::string pem = TextOfFile(own.certificate_file);
    const absl::StatusOr<Validity> validity = CertificateValidity(pem);
    if (!validity.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat(own.certificate_file, ": ", std::string(validity.status().message()),
                       "; remove it and ", own.key_file, ", and a new one is made"));
    }
    if (After(Now(), kRenewBefore_s) < validity->to) {
      ESPALIER_ASSIGN_OR_RETURN(own.hash, CertificateHash(pem));
      return own;
    }
    own.replaced = true;
  }
  ESPALIER_ASSIGN_OR_RETURN(const Certificate fresh,
                            MakeCertificate(kServiceCertificateName, OwnNames()));
  ESPALIER_RETURN_IF_ERROR(KeepPrivateFile(own.key_file, fresh.key_pem));
  ESPALIER_RETURN_IF_ERROR(KeepPrivateFile(own.certificate_file, fresh.pem));
  ESPALIER_ASSIGN_OR_RETURN(own.hash, CertificateHash(fresh.pem));
  return own;
}

}  // namespace espalier
