#include "base/protocol.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

std::string Versions(const Speaker& speaker) {
  const std::string versions = speaker.oldest == speaker.newest
                                   ? absl::StrCat(speaker.newest)
                                   : absl::StrCat(speaker.oldest, " to ", speaker.newest);
  return absl::StrCat(versions, speaker.release.empty() ? "" : " (release ", speaker.release,
                      speaker.release.empty() ? "" : ")");
}

}  // namespace

std::string Release() { return ESPALIER_VERSION; }

Speaker ThisSpeaker(const std::string& name) {
  return {name, kProtocol, kOldestProtocol, Release()};
}

std::string ProtocolText() { return absl::StrCat(kProtocol, " ", kOldestProtocol, " ", Release()); }

absl::StatusOr<Speaker> SpeakerFrom(const std::string& name, const std::string& text) {
  std::istringstream words(text);
  Speaker speaker{name};
  if (words >> speaker.newest >> speaker.oldest >> speaker.release && speaker.oldest >= 1 &&
      speaker.newest >= speaker.oldest) {
    return speaker;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " says that it speaks protocol \"", text.substr(0, 100),
                   "\"; it should be newest, oldest and release, as in \"", ProtocolText(), "\""));
}

absl::StatusOr<int> AgreeOnProtocol(const Speaker& other, const Speaker& self) {
  const int version = std::min(other.newest, self.newest);
  if (version >= std::max({other.oldest, self.oldest, 1})) return version;
  const Speaker& older = other.newest < self.newest ? other : self;
  return absl::FailedPreconditionError(absl::StrCat(other.name, " speaks protocol ",
                                                    Versions(other), ", ", self.name, " speaks ",
                                                    Versions(self), ": upgrade ", older.name));
}

}  // namespace espalier
