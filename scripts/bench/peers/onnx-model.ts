/**
 * The bytes of an ONNX model of one node, written by hand: a ModelProto in
 * protobuf's wire format, with the field numbers of onnx.proto3.
 */

/** What attention is asked for. Queries, keys, values and output are f32 [batch, tokens, heads * headDim]. */
export interface AttentionModel {
  readonly batch: number;
  readonly tokens: number;
  readonly heads: number;
  readonly headDim: number;
  /** Factor of the scores. */
  readonly scale: number;
  readonly causal: boolean;
}

/** Names of the model's inputs and of its output. */
export const attentionInputs = ["query", "key", "value"] as const;
export const attentionOutput = "output";

/** `MultiHeadAttention` of ONNX Runtime's own operators. */
export function attentionModel({ batch, tokens, heads, headDim, scale, causal }: AttentionModel): Uint8Array {
  const shape = [batch, tokens, heads * headDim];
  const operators = "com.microsoft";
  const node = message(
    ...attentionInputs.map((input) => text(1, input)),
    text(2, attentionOutput),
    text(4, "MultiHeadAttention"),
    message(text(1, "num_heads"), integer(3, heads), integer(20, attributeTypes.int)).as(5),
    message(text(1, "scale"), float(2, scale), integer(20, attributeTypes.float)).as(5),
    message(text(1, "unidirectional"), integer(3, causal ? 1 : 0), integer(20, attributeTypes.int)).as(5),
    text(7, operators),
  );
  const graph = message(
    node.as(1),
    text(2, "attention"),
    ...attentionInputs.map((input) => floatTensor(input, shape).as(11)),
    floatTensor(attentionOutput, shape).as(12),
  );
  const model = message(
    integer(1, irVersion),
    graph.as(7),
    message(text(1, ""), integer(2, 17)).as(8),
    message(text(1, operators), integer(2, 1)).as(8),
  );
  return Uint8Array.from(model.bytes);
}

/** Version of the format that operator set 17 came with. */
const irVersion = 8;
const attributeTypes = { float: 1, int: 2 } as const;
const elementTypeFloat = 1;

type Bytes = readonly number[];

/** A message, whose bytes may become a field of another. */
class Message {
  constructor(readonly bytes: Bytes) {}

  as(field: number): Bytes {
    return lengthPrefixed(field, this.bytes);
  }
}

function message(...fields: readonly Bytes[]): Message {
  return new Message(fields.flat());
}

/** ValueInfoProto of a tensor of floats. */
function floatTensor(name: string, shape: readonly number[]): Message {
  const dimensions = shape.map((extent) => message(integer(1, extent)).as(1));
  const tensor = message(integer(1, elementTypeFloat), message(...dimensions).as(2));
  return message(text(1, name), message(tensor.as(1)).as(2));
}

/** A key's low three bits say how the value is written. */
const wireTypes = { varint: 0, lengthPrefixed: 2, fixed32: 5 } as const;

/** Base 128, least significant digit first; the high bit of a byte says that another follows. */
function varint(value: number): Bytes {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return [...bytes, rest];
}

function key(field: number, wireType: number): Bytes {
  return varint(field * 8 + wireType);
}

function integer(field: number, value: number): Bytes {
  return [...key(field, wireTypes.varint), ...varint(value)];
}

function float(field: number, value: number): Bytes {
  return [...key(field, wireTypes.fixed32), ...new Uint8Array(new Float32Array([value]).buffer)];
}

function text(field: number, value: string): Bytes {
  return lengthPrefixed(field, [...new TextEncoder().encode(value)]);
}

function lengthPrefixed(field: number, bytes: Bytes): Bytes {
  return [...key(field, wireTypes.lengthPrefixed), ...varint(bytes.length), ...bytes];
}
