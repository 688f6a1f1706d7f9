/** Element `index` of `values`; an oracle that would read outside its data throws instead. */
export function at(values: ArrayLike<number>, index: number): number {
  const value = values[index];
  if (value === undefined) throw new RangeError(`index ${index} is outside 0 to ${values.length - 1}`);
  return value;
}
