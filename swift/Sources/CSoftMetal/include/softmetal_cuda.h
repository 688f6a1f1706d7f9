/// What the CUDA driver's `cuLaunchKernelEx` takes, laid out as NVIDIA documents it.
#pragma once

#include <stdint.h>

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: not 0 where a launch need not wait for the one before it,
/// since its kernel does.
#define SM_CUDA_PROGRAMMATIC_SERIALIZATION 6

/// `CUlaunchAttribute`.
typedef struct SmCudaLaunchAttribute {
  uint32_t id;
  uint32_t padding;
  int32_t value;
  uint32_t rest[15];
} SmCudaLaunchAttribute;

/// `CUlaunchConfig`.
typedef struct SmCudaLaunch {
  uint32_t blocks[3];
  uint32_t threads[3];  ///< of each block
  uint32_t sharedLength;  ///< bytes of shared memory beside that of the kernel's variables
  void *stream;
  const SmCudaLaunchAttribute *attributes;
  uint32_t attributeCount;
} SmCudaLaunch;
