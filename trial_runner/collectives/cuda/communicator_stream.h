#pragma once

#include <cuda_runtime_api.h>

namespace espalier {

// The stream of a GPU on which a communicator works: the seam to CUDA. One thread calls it, but
// for Synchronize.
class CommunicatorStream {
 public:
  virtual ~CommunicatorStream() = default;

  virtual cudaStream_t handle() const = 0;
  // What is begun from now on comes after what the calling thread's current stream holds.
  virtual void FollowCurrent() = 0;
  // What the calling thread's current stream is given from now on comes after what was begun here.
  virtual void LeadCurrent() = 0;
  // Passed() tells whether the GPU has come to the newest mark, of this stream or of the current
  // one.
  virtual void Mark() = 0;
  virtual void MarkCurrent() = 0;
  virtual bool Passed() const = 0;
  // Waits for all that was begun. Any thread.
  virtual void Synchronize() = 0;
};

}  // namespace espalier
