#include "tuner/core/terminators/terminator.h"

namespace espalier {

namespace terminators {

PluginRow<Terminator> EmmrRow();
PluginRow<Terminator> NoTerminatorRow();
PluginRow<Terminator> RegretRow();
PluginRow<Terminator> StagnationRow();

}  // namespace terminators

const PluginTable<Terminator>& Terminators() {
  static const PluginTable<Terminator> table{
      "terminator",
      {
          terminators::NoTerminatorRow(),
          terminators::StagnationRow(),
          terminators::RegretRow(),
          terminators::EmmrRow(),
      },
  };
  return table;
}

absl::StatusOr<std::unique_ptr<Terminator>> MakeTerminator(std::string_view name,
                                                           const Options& options) {
  return Terminators().Make(name, options);
}

}  // namespace espalier
