#include "trial_runner/control/standalone_control_plane.h"

#include <cinttypes>
#include <cstdio>
#include <optional>
#include <utility>

#include "trial_runner/control/control_plane_base.h"

namespace espalier {
namespace {

class StandaloneControlPlane final : public ControlPlaneBase {
 public:
  explicit StandaloneControlPlane(ReplicaId self) : self_(self) {}

  void Send(const ReplicaMessage& message) override {
    if (const auto* ready = std::get_if<ReplicaReady>(&message)) {
      Announce({1, {{self_, NodeId(1), ready->address}}, false});
    } else if (const auto* report = std::get_if<ReplicaReport>(&message)) {
      std::printf("report step=%" PRId64 " value=%.9g", report->step, report->value);
      for (const auto& [name, value] : report->extra) {
        std::printf(" %s=%.9g", name.c_str(), value);
      }
      std::printf("\n");
    } else if (const auto* checkpoint = std::get_if<ReplicaCheckpoint>(&message)) {
      std::printf("checkpoint step=%" PRId64 " path=%s\n", checkpoint->step,
                  checkpoint->path.c_str());
    } else if (const auto* finished = std::get_if<ReplicaFinished>(&message)) {
      if (finished->value) std::printf("finished value=%.9g\n", *finished->value);
    }
    std::fflush(stdout);
  }

  std::optional<Adopted> Park(std::int64_t) override { return std::nullopt; }

 private:
  const ReplicaId self_;
};

}  // namespace

std::unique_ptr<ControlPlane> MakeStandaloneControlPlane(ReplicaId self) {
  return std::make_unique<StandaloneControlPlane>(self);
}

}  // namespace espalier
