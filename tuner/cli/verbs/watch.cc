// `tuner watch`: follows a study live until it ends.

#include <memory>
#include <string>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/follow.h"
#include "tuner/cli/verb.h"

namespace espalier {
namespace {

struct WatchArguments {
  WatchOptions options;
  std::string study;
};

}  // namespace

VerbAction AddWatch(CLI::App& app) {
  auto a = std::make_shared<WatchArguments>();
  AddStudyName(app, a->study);
  a->options.AddTo(app);
  return [a] {
    return WithClient("watch", a->options.service,
                      [a](Client& client) { return WatchStudy(client, a->study, a->options); });
  };
}

}  // namespace espalier
