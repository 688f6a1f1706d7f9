/** As much of a 64-bit little-endian ELF file as a test of a shared library needs. */

interface Section {
  readonly name: string;
  readonly type: number;
  readonly offset: number;
  readonly size: number;
  /** Index of the section that this one refers to. */
  readonly link: number;
}

const symbolTable = 2;
const dynamicSection = 6;
const dynamicSymbols = 11;
const [local, needed] = [0, 1];

export class Elf {
  readonly sections: readonly Section[];
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (this.#u32(0) !== 0x464c_457f || bytes[4] !== 2 || bytes[5] !== 1) throw new Error("no 64-bit ELF file");
    const table = this.#u64(0x28);
    const [size, count, namesIndex] = [this.#u16(0x3a), this.#u16(0x3c), this.#u16(0x3e)];
    const at = (index: number): Section & { readonly nameOffset: number } => {
      const start = table + index * size;
      const [nameOffset, type, link] = [this.#u32(start), this.#u32(start + 4), this.#u32(start + 40)];
      return { name: "", nameOffset, type, link, offset: this.#u64(start + 24), size: this.#u64(start + 32) };
    };
    const names = at(namesIndex);
    this.sections = Array.from({ length: count }, (_, index) => {
      const section = at(index);
      return { ...section, name: this.#text(names.offset + section.nameOffset) };
    });
  }

  /** Names of the symbols that other files can use. */
  get exported(): readonly string[] {
    const names: string[] = [];
    for (const section of this.#ofType(dynamicSymbols))
      for (let at = section.offset; at < section.offset + section.size; at += 24) {
        const isDefined = this.#u16(at + 6) !== 0;
        const binding = (this.#bytes[at + 4] as number) >> 4;
        if (isDefined && binding !== local) names.push(this.#linkedText(section, this.#u32(at)));
      }
    return names;
  }

  /** Files that the dynamic linker loads with this one. */
  get needed(): readonly string[] {
    const names: string[] = [];
    for (const section of this.#ofType(dynamicSection))
      for (let at = section.offset; at < section.offset + section.size; at += 16)
        if (this.#u64(at) === needed) names.push(this.#linkedText(section, this.#u64(at + 8)));
    return names;
  }

  /** Whether symbols and debug information for people are gone. */
  get isStripped(): boolean {
    return this.#ofType(symbolTable).length === 0 && !this.sections.some(({ name }) => name.startsWith(".debug"));
  }

  #ofType(type: number): readonly Section[] {
    return this.sections.filter((section) => section.type === type);
  }

  #linkedText(section: Section, offset: number): string {
    return this.#text((this.sections[section.link] as Section).offset + offset);
  }

  #text(offset: number): string {
    return new TextDecoder().decode(this.#bytes.subarray(offset, this.#bytes.indexOf(0, offset)));
  }

  #u16(offset: number): number {
    return this.#view.getUint16(offset, true);
  }
  #u32(offset: number): number {
    return this.#view.getUint32(offset, true);
  }
  #u64(offset: number): number {
    return Number(this.#view.getBigUint64(offset, true));
  }
}
