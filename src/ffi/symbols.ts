import type { FFIFunction } from "bun:ffi";

/** `MA_ABI_VERSION` of the header that this package was written against. */
export const abiVersion = 3;

/** The function that every version of the library has; called before all others. */
export const versionSymbol = {
  ma_abi_version: { args: [], returns: "i32" },
} as const satisfies Record<string, FFIFunction>;

/** The functions of metal_attention.h. All return a status. */
export const symbols = {
  ma_last_error: { args: ["ptr", "u32"], returns: "i32" },
  ma_layout_json: { args: ["ptr", "u64", "ptr"], returns: "i32" },
  ma_layout_read: { args: ["ptr", "ptr", "u32", "ptr", "u64", "ptr", "ptr"], returns: "i32" },

  ma_device_open: { args: ["ptr"], returns: "i32" },
  ma_device_close: { args: ["u32"], returns: "i32" },
  ma_device_info: { args: ["u32", "ptr"], returns: "i32" },

  ma_buffer_create: { args: ["u32", "u64", "ptr", "ptr"], returns: "i32" },
  ma_buffer_info: { args: ["u32", "ptr", "ptr"], returns: "i32" },
  ma_buffer_release: { args: ["u32"], returns: "i32" },

  ma_source_register: { args: ["u32", "ptr", "ptr", "u64"], returns: "i32" },
  ma_kernel_names: { args: ["u32", "ptr", "u64", "ptr"], returns: "i32" },
  ma_pipeline_create: { args: ["u32", "ptr", "ptr", "u32", "ptr"], returns: "i32" },
  ma_pipeline_info: { args: ["u32", "ptr"], returns: "i32" },
  ma_pipeline_release: { args: ["u32"], returns: "i32" },

  ma_pass_create: { args: ["u32", "u32", "ptr"], returns: "i32" },
  ma_pass_commit: { args: ["u32"], returns: "i32" },
  ma_pass_wait: { args: ["u32"], returns: "i32" },
  ma_pass_info: { args: ["u32", "ptr"], returns: "i32" },
  ma_pass_describe: { args: ["u32", "ptr", "u64", "ptr"], returns: "i32" },
  ma_pass_release: { args: ["u32"], returns: "i32" },

  ma_encode_kernel: { args: ["u32", "ptr"], returns: "i32" },
  ma_kv_cache_copy: { args: ["u32", "ptr"], returns: "i32" },
  ma_kv_cache_copy_batch: { args: ["u32", "ptr"], returns: "i32" },
  ma_kv_cache_copy_seq: { args: ["u32", "ptr"], returns: "i32" },
  ma_kv_cache_copy_head_major: { args: ["u32", "ptr"], returns: "i32" },
  ma_hadamard_quantize_kv: { args: ["u32", "ptr"], returns: "i32" },
  ma_hadamard_quantize_kv_seq: { args: ["u32", "ptr"], returns: "i32" },
  ma_hadamard_dequantize_kv: { args: ["u32", "ptr"], returns: "i32" },
  ma_flash_attn_prefill: { args: ["u32", "ptr"], returns: "i32" },
  ma_build_mask: { args: ["u32", "ptr"], returns: "i32" },
  ma_classify_mask_tiles: { args: ["u32", "ptr"], returns: "i32" },
} as const satisfies Record<string, FFIFunction>;
