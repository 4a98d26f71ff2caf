#pragma once

// Compiled for several instruction sets; the loader takes the best the processor has. The library
// is built for the oldest one, and these loops are all the arithmetic it does itself. Not under
// sanitizers: what chooses runs before these have set themselves up.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ESPALIER_CLONES \
  __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define ESPALIER_CLONES
#endif
