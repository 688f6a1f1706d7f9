/// Included first: sums and products in these shaders are rounded one by one, and fused where they say `fma`.
///
/// Metal's compiler fuses a * b + c of itself, in its safe mode too. The angles of rotary positions are sums of two
/// floats, which that would break, and bits that must not depend on the form of a kernel would do so.
#pragma once

#if defined(__METAL_VERSION__) && __METAL_VERSION__ >= 320
#pragma METAL fp contract(off)
#endif
#pragma clang fp contract(off)
