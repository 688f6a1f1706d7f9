/// Classes of mask tiles [BQ, BK], which `classify_mask_tiles_*` writes and attention reads.
///
/// Classes are [planes, NQ, NK]. A mask's planes are its batches times its
/// heads, where a stride of 0 makes one plane of all.
#pragma once

/// No row attends any key.
constant constexpr uchar kTileBlocked = 0;
constant constexpr uchar kTileMixed = 1;
/// The mask changes no score.
constant constexpr uchar kTileUnmasked = 2;

/// Planes of a batch; M_strides are (batch, head, query row).
inline int head_planes(const constant ma_i64 *M_strides, int heads) { return M_strides[1] != 0 ? heads : 1; }

/// The plane of a batch and head.
inline long plane_of(const constant ma_i64 *M_strides, int heads, int batch, int head) {
  return (M_strides[0] != 0 ? long(batch) * head_planes(M_strides, heads) : 0) + (M_strides[1] != 0 ? head : 0);
}
