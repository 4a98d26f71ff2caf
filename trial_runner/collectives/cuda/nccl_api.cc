#include "trial_runner/collectives/cuda/nccl_api.h"

namespace espalier {

const NcclApi& LinkedNccl() {
  static constexpr NcclApi kApi = {.get_unique_id = ncclGetUniqueId,
                                   .init_rank = ncclCommInitRankConfig,
                                   .abort = ncclCommAbort,
                                   .get_async_error = ncclCommGetAsyncError,
                                   .all_reduce = ncclAllReduce,
                                   .broadcast = ncclBroadcast,
                                   .send = ncclSend,
                                   .receive = ncclRecv,
                                   .group_start = ncclGroupStart,
                                   .group_end = ncclGroupEnd,
                                   .error_string = ncclGetErrorString,
                                   .last_error = ncclGetLastError};
  return kApi;
}

}  // namespace espalier
