/// Kernels that the tests of the API run.
let testShader = """
  #include <metal_simdgroup_matrix>
  #include <metal_stdlib>
  using namespace metal;

  constant uint stride [[function_constant(7)]];
  constant bool has_bias [[function_constant(8)]];

  kernel void increment(device uint *data [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    data[i] += 1;
  }

  // data = 3 * data + value: the result tells the order of several dispatches.
  kernel void accumulate(device uint *data [[buffer(0)]], constant uint &value [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
    data[i] = 3 * data[i] + value;
  }

  kernel void copy_wide(device const float4 *source [[buffer(0)]], device float4 *target [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
    target[i] = source[i];
  }

  kernel void count_by_stride(device uint *data [[buffer(0)]],
                            device const uint *bias [[buffer(1), function_constant(has_bias)]],
                            uint i [[thread_position_in_grid]]) {
    data[i] = i * stride + (has_bias ? bias[i] : 0);
  }

  kernel void reverse_threadgroup(device uint *data [[buffer(0)]], threadgroup uint *scratch [[threadgroup(0)]],
                                  uint i [[thread_position_in_grid]],
                                  uint lane [[thread_index_in_threadgroup]],
                                  uint width [[threads_per_threadgroup]]) {
    scratch[lane] = data[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    data[i] = scratch[width - 1 - lane];
  }

  kernel void static_and_dynamic(device uint *data [[buffer(0)]], threadgroup uint *scratch [[threadgroup(0)]],
                                 uint lane [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[4096];
    tile[lane] = lane;
    scratch[lane] = lane;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    data[lane] = tile[lane] + scratch[lane];
  }

  kernel void too_much_static(device uint *data [[buffer(0)]], uint lane [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[8193];
    tile[lane] = lane;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    data[lane] = tile[lane];
  }

  [[kernel, max_total_threads_per_threadgroup(64)]]
  void at_most_64(device uint *data [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    data[i] = 64;
  }

  kernel void store_matrix(device float *data [[buffer(0)]]) {
    simdgroup_matrix<float, 8, 8> ones = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
    simdgroup_store(ones, data, 8);
  }

  kernel void write_far(device uint *data [[buffer(0)]]) {
    data[-(1l << 38)] = 1;
  }

  kernel void wait_for_flag(volatile device uint *flag [[buffer(0)]]) {
    while (flag[0] == 0) {}
    flag[1] = 1;
  }
  """
