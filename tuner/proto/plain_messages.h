#pragma once

#include <grpc/grpc.h>
#include <grpcpp/server_builder.h>

namespace espalier {

// The library unpacks a compressed message before it looks at its size: 200 KB may be 200 MB. Such
// a call is refused (UNIMPLEMENTED), and nothing is unpacked.
inline void TakePlainMessages(grpc::ServerBuilder& builder) {
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

}  // namespace espalier
