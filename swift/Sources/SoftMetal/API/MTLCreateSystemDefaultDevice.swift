import Glibc

/// The device that runs kernels on the CPU, or an NVIDIA GPU where that is asked for: a new one at each call, with worker
/// threads or a context of its own.
///
/// Environment:
/// - `SOFTMETAL_DEVICE`: `cpu` (the default), `nvidia` for the first NVIDIA GPU,
///   or an index: 0 for the CPU, GPUs from 1 on.
/// - `SOFTMETAL_CUDA`: the driver's library, `libcuda.so.1` by default.
/// - `SOFTMETAL_THREADS`: worker threads, 1 to 256; by default one for each
///   processor that the process may use, by its affinity and the quota of its
///   control groups.
/// - `SOFTMETAL_TIME_LIMIT`: seconds that one dispatch may take, 0 for any
///   time; 60 by default.
/// - `SOFTMETAL_ORDER`: `forward` (the default), `reverse` or `shuffle:SEED`,
///   the order in which the dispatches between two barriers of a concurrent
///   encoder run. A result that depends on it lacks a barrier.
/// - `SOFTMETAL_GUARD`: 1 lays guard zones around each buffer. A command buffer
///   whose kernels write into them fails; what they read there is not a number.
/// - `SOFTMETAL_UNWRITTEN`: 1 leaves private buffers of a GPU as its driver gives
///   them, without zeros, so that NVIDIA's initcheck sees reads of what nobody wrote.
/// - `SOFTMETAL_ALIGNED_BARRIERS`: 1 compiles the barriers of a threadgroup for a GPU as
///   `bar.sync`, so that NVIDIA's synccheck sees lanes that leave one out.
/// - `SOFTMETAL_EXECUTOR`: `vectors` (the default, where the compiler pass is at
///   hand) or `threads`: how kernels whose lanes work together run.
/// - `SOFTMETAL_CHECK`: `lockstep` runs those on both, and fails a command buffer
///   whose kernel leaves something else with every thread by itself.
/// - `SOFTMETAL_COUNTERS`: `stage` (the default), as an Apple GPU samples its
///   counters, or `dispatch`: between dispatches too.
/// - `SOFTMETAL_MATRIX_UNITS`: 1 has products of matrices count as many times as fast as
///   other arithmetic, 0 not; unset, 1 on a GPU and 0 on the CPU.
/// - `SOFTMETAL_FAIL`: `KIND:NUMBER` makes that allocation of the device fail;
///   kinds are `buffer`, `pipeline`, `pass` (a command buffer) and `encoder`.
///
/// - Returns: nil when a variable holds something else or the worker threads
///   cannot be had; standard error says which.
public func MTLCreateSystemDefaultDevice() -> (any MTLDevice)? {
  do {
    return try openDevice(nil)
  } catch {
    fputs("SoftMetal: \(error)\n", stderr)
    return nil
  }
}
