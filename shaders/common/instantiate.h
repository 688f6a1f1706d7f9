/// Entry points made from templates: the one form that all shaders use.
#pragma once

/// Added to every name. Empty in the library; the tool and the tests compile
/// shaders beside those of the library, where a name may not come twice.
#ifndef KERNEL_SUFFIX
#define KERNEL_SUFFIX ""
#endif

// clang-format off
/// The entry point `name`, a string: `function` with these template arguments.
#define instantiate_kernel(name, function, ...) \
  template [[host_name(name KERNEL_SUFFIX)]] [[kernel]] decltype(function<__VA_ARGS__>) function<__VA_ARGS__>
// clang-format on
