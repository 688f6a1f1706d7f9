import { display, refused } from "../checks.ts";
import { bfloat16ToFloat32, float16ToFloat32 } from "../device/convert.ts";
import { checkTensor, malformed, type SafetensorsTensor } from "./format.ts";

/**
 * The elements of a float tensor as f32: exact for F32, F16 and BF16, to
 * nearest for F64. `name` stands for the tensor in messages.
 *
 * Errors: `invalid-argument` for another dtype, and for bytes that do not fit the shape.
 */
export function floatValues(tensor: SafetensorsTensor, name = "tensor"): Float32Array<ArrayBuffer> {
  if (typeof name !== "string") throw refused("name", `expected a string, got ${display(name)}`);
  const { dtype, bytes } = checkTensor(name, tensor);
  // A copy begins at a multiple of the element size, which a view into a file need not. Not by slice: a Buffer's is a view.
  const { buffer } = new Uint8Array(bytes);
  switch (dtype) {
    case "F64":
      return new Float32Array(new Float64Array(buffer));
    case "F32":
      return new Float32Array(buffer as ArrayBuffer);
    case "F16":
      return float16ToFloat32(new Uint16Array(buffer));
    case "BF16":
      return bfloat16ToFloat32(new Uint16Array(buffer));
    default:
      throw malformed(name, `expected F64, F32, F16 or BF16, got ${dtype}`);
  }
}
