#pragma once

#include <nccl.h>

namespace espalier {

// The functions of NCCL that are used, under the names and with the contracts that its manual gives
// them. A table, so that they can be stood in for where there is no GPU.
struct NcclApi {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) init_rank;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclCommGetAsyncError) get_async_error;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGetLastError) last_error;
};

// The functions of the NCCL that this library is linked with.
const NcclApi& LinkedNccl();

}  // namespace espalier
