#include "adapters/nni/service/trial_command.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/json/command_words.h"

namespace espalier::nni {

namespace {

// The agent's word of where the service is goes first: it may be another machine than that of NNI.
// What the trial should not meet itself is taken out of its environment. Of the two spellings of
// no_proxy some programs read the one and some the other. NNI's local service gives commands to
// bash, for which many are written.
constexpr char kPrelude[] = R"(
folder=${ESPALIER_PARAMETERS%/*}
url=${ESPALIER_HTTP:-$ESPALIER_NNI_SERVICE}
host=${url#*://}; host=${host%%/*}; host=${host%:*}
export NNI_PLATFORM=espalier NNI_TRIAL_COMMAND_CHANNEL="$url$ESPALIER_NNI_CHANNEL"
export NNI_SYS_DIR="$folder" NNI_OUTPUT_DIR="$folder" NNI_CODE_DIR="$PWD"
export ESPALIER_CHECKPOINT_DIR="${ESPALIER_NNI_CHECKPOINTS:-$ESPALIER_CHECKPOINT_DIR}"
export ADAPTDL_CHECKPOINT_PATH="$ESPALIER_CHECKPOINT_DIR" ADAPTDL_SHARE_PATH="$folder/share"
export ADAPTDL_TENSORBOARD_LOGDIR="$folder/tensorboard"
NO_PROXY=${NO_PROXY:-$no_proxy}; no_proxy=${no_proxy:-$NO_PROXY}
export NO_PROXY="${NO_PROXY:+$NO_PROXY,}$host" no_proxy="${no_proxy:+$no_proxy,}$host"
set -- "$ADAPTDL_CHECKPOINT_PATH" "$ADAPTDL_SHARE_PATH" "$ADAPTDL_TENSORBOARD_LOGDIR"
case $ESPALIER_PARAM_SAVE_CHECKPOINT_DIR in
  /*/*) set -- "$@" "${ESPALIER_PARAM_SAVE_CHECKPOINT_DIR%/*}" ;;
esac
mkdir -p "$@" || exit
unset ESPALIER_NNI_SERVICE ESPALIER_NNI_CHANNEL ESPALIER_NNI_CHECKPOINTS folder url host
command -v bash > /dev/null && exec bash -c "$0"
exec /bin/sh -c "$0"
)";

}  // namespace

std::vector<std::string> TrialCommand(const std::string& command) {
  // NNI replaces nothing in it.
  return {"/bin/sh", "-c", kPrelude, LiteralWord(command)};
}

std::map<std::string, std::string> TrialVariables(const TrialPlace& place) {
  std::map<std::string, std::string> variables = {
      {"NNI_EXP_ID", place.experiment},
      {"NNI_TRIAL_JOB_ID", place.trial},
      {"NNI_TRIAL_SEQ_ID", absl::StrCat(place.sequence)},
      {"ESPALIER_NNI_SERVICE", place.service_url},
      {"ESPALIER_NNI_CHANNEL", place.channel_path}};
  if (!place.checkpoint_folder.empty()) {
    variables["ESPALIER_NNI_CHECKPOINTS"] = place.checkpoint_folder;
  }
  return variables;
}

}  // namespace espalier::nni
