#pragma once

#include <utility>

#include "tuner/api/tuner.h"

namespace espalier {

// The tuner for clients that may look and no more: their views show no secrets. The tuner that it
// stands for outlives it.
class MaskingTuner final : public Tuner {
 public:
  explicit MaskingTuner(Tuner& tuner) : tuner_(tuner) {}

  Reply Post(Event event) override { return tuner_.Post(std::move(event)); }
  void PostThen(Event event, std::function<void(const Reply&)> done) override {
    tuner_.PostThen(std::move(event), std::move(done));
  }
  Reply PostAndRead(Event event,
                    const std::function<void(const Reply&, const View&)>& look) override {
    return tuner_.PostAndRead(std::move(event), [&look](const Reply& reply, const View& view) {
      look(reply, Masked(view));
    });
  }
  absl::Status Read(const std::function<void(const View&)>& look) override {
    return tuner_.Read([&look](const View& view) { look(Masked(view)); });
  }
  void ReadThen(std::function<void(const View*)> look) override {
    tuner_.ReadThen([look = std::move(look)](const View* view) {
      if (view == nullptr) return look(nullptr);
      const View masked = Masked(*view);
      look(&masked);
    });
  }
  absl::StatusOr<std::string> ReadOutput(NodeId node, const TrialName& trial,
                                         const OutputPart& part) override {
    return tuner_.ReadOutput(node, trial, part);
  }
  absl::StatusOr<std::string> CheckSampler(const StudySpec& spec) override {
    return tuner_.CheckSampler(spec);
  }
  std::string certificate_hash() const override { return tuner_.certificate_hash(); }

 private:
  static View Masked(const View& view) {
    View masked = view;
    masked.shows_secrets = false;
    return masked;
  }

  Tuner& tuner_;
};

}  // namespace espalier
