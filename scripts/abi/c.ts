import type { Header } from "./header.ts";

/** `generated/layout.c`: what the generator computed, held against the C compiler. */
export function layoutAssertions(header: Header): string {
  const lines = header.structs.flatMap(({ name, size, fields }) => [
    `static_assert(sizeof(${name}) == ${size}, "${name}");`,
    ...fields.map(
      (field) => `static_assert(offsetof(${name}, ${field.name}) == ${field.offset}, "${name}.${field.name}");`,
    ),
  ]);
  return `#include <assert.h>\n#include <stddef.h>\n\n#include "metal_attention.h"\n\n${lines.join("\n")}\n`;
}
