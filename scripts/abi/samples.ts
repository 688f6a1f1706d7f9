import { type Field, type Header, isDerived, isReserved, type Struct } from "./header.ts";
import { directions, isHalved } from "./typescript.ts";

/**
 * `test/layout/generated/samples.ts`: a record of each packed struct, with a
 * value of its own in every field, beside what the library must read there.
 */
export function samplesModule(header: Header): string {
  const { packed } = directions(header);
  const byName = new Map(header.structs.map((struct) => [struct.name, struct]));
  const entries = packed.map((struct) => {
    const sample = new Sample(byName);
    const record = sample.record(struct, "");
    const fields = sample.fields.map(([path, value]) => `"${path}": ${value},`);
    return `{ struct: "${struct.name}", pack: (block: Block) => structs.pack${struct.name}(block, 0, ${record}), fields: {${fields.join(" ")}} },`;
  });
  return [
    'import type { Block } from "../../../src/ffi/block.ts";',
    'import * as structs from "../../../src/ffi/generated/structs.ts";',
    `/** What the library must read in each struct as the package packs it. */\nexport const samples = [\n${entries.join("\n")}\n] as const;`,
  ].join("\n\n");
}

class Sample {
  readonly fields: (readonly [path: string, value: number])[] = [];
  readonly #structs: ReadonlyMap<string, Struct>;
  #count = 0;

  constructor(structs: ReadonlyMap<string, Struct>) {
    this.#structs = structs;
  }

  record(struct: Struct, path: string): string {
    const members = struct.fields
      .filter((field) => !isReserved(field))
      .map((field) => (isDerived(field) ? this.#derived(field, path) : this.#member(struct, field, path)));
    return `{ ${members.filter((member) => member !== "").join(", ")} }`;
  }

  /** Packed as 0. */
  #derived(field: Field, path: string): string {
    this.fields.push([`${path}${field.name}`, 0]);
    return "";
  }

  #member(struct: Struct, field: Field, path: string): string {
    const nested = field.pointer ? undefined : this.#structs.get(field.type);
    const name = `${path}${field.name}`;
    if (nested !== undefined) return `${field.name}: ${this.record(nested, `${name}.`)}`;
    const values = Array.from({ length: field.count }, (_, i) => {
      const value = this.#value(field);
      this.fields.push([field.count > 1 ? `${name}[${i}]` : name, value]);
      return value;
    });
    if (isHalved(struct, field)) {
      const value = values[0] as number;
      return `${field.name}Low: ${value % 2 ** 32}, ${field.name}High: ${Math.floor(value / 2 ** 32)}`;
    }
    if (field.type === "uint8_t" && !field.pointer) return `${field.name}: Uint8Array.of(${values.join(", ")})`;
    return `${field.name}: ${field.count > 1 ? `[${values.join(", ")}]` : values[0]}`;
  }

  /** A value that fills the field's bytes and that no other field of the struct has. */
  #value(field: Field): number {
    const n = ++this.#count;
    if (field.pointer || field.size === 8) return (0x1000 + n) * 2 ** 32 + 0x8000_0000 + n;
    if (field.size === 1) return 128 + n;
    if (field.type === "ma_f32") return n + 0.25;
    return field.type === "ma_i32" ? 0x4000_0000 + n : 0x8000_0000 + n;
  }
}
