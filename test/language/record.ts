/** Bytes of the structs that kernels take as arguments, laid out as C lays them out. */

/** Size of each scalar in bytes, which is its alignment, and how it is written. */
const scalars = {
  i16: [2, (view: DataView, at: number, value: number) => view.setInt16(at, value, true)],
  i32: [4, (view: DataView, at: number, value: number) => view.setInt32(at, value, true)],
  i64: [8, (view: DataView, at: number, value: number) => view.setBigInt64(at, BigInt(value), true)],
  f32: [4, (view: DataView, at: number, value: number) => view.setFloat32(at, value, true)],
} as const;

/** Type and value of each member, in order; an unsigned one by the signed type of its size. */
export type Members = readonly (readonly [keyof typeof scalars, number])[];

export function record(members: Members): Uint8Array {
  let end = 0;
  let largest = 1;
  const places = members.map(([type, value]) => {
    const [size, write] = scalars[type];
    const at = Math.ceil(end / size) * size;
    end = at + size;
    largest = Math.max(largest, size);
    return { at, write, value };
  });
  const bytes = new Uint8Array(Math.ceil(end / largest) * largest);
  const view = new DataView(bytes.buffer);
  for (const { at, write, value } of places) write(view, at, value);
  return bytes;
}
