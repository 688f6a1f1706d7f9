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
  return operatorModel({
    operator: "MultiHeadAttention",
    attributes: [attribute("num_heads", heads), factor("scale", scale), attribute("unidirectional", causal ? 1 : 0)],
    inputs: attentionInputs.map((name) => tensor(name, shape)),
    outputs: [tensor(attentionOutput, shape)],
  });
}

/** Attention of one new token over a cache whose last slot it takes. */
export interface DecodeModel {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Slots of the cache, f32 [1, kvHeads, keys, headDim]. */
  readonly keys: number;
  readonly scale: number;
}

/** `GroupQueryAttention`, which writes the new key and value to the cache, in place where both names are of one memory. */
export function decodeModel({ heads, kvHeads, headDim, keys, scale }: DecodeModel): Uint8Array {
  const cache = [1, kvHeads, keys, headDim];
  const row = [1, 1, kvHeads * headDim];
  return operatorModel({
    operator: "GroupQueryAttention",
    attributes: [attribute("num_heads", heads), attribute("kv_num_heads", kvHeads), factor("scale", scale)],
    inputs: [
      tensor("query", [1, 1, heads * headDim]),
      tensor("key", row),
      tensor("value", row),
      tensor("past_key", cache),
      tensor("past_value", cache),
      tensor("seqlens_k", [1], elementTypes.int32),
      tensor("total_sequence_length", [1], elementTypes.int32),
    ],
    outputs: [
      tensor(attentionOutput, [1, 1, heads * headDim]),
      tensor("present_key", cache),
      tensor("present_value", cache),
    ],
  });
}

interface NamedMessage {
  readonly name: string;
  readonly message: Message;
}

interface OperatorModel {
  readonly operator: string;
  readonly attributes: readonly Message[];
  readonly inputs: readonly NamedMessage[];
  readonly outputs: readonly NamedMessage[];
}

function operatorModel({ operator, attributes, inputs, outputs }: OperatorModel): Uint8Array {
  const operators = "com.microsoft";
  const node = message(
    ...inputs.map(({ name }) => text(1, name)),
    ...outputs.map(({ name }) => text(2, name)),
    text(4, operator),
    ...attributes.map((each) => each.as(5)),
    text(7, operators),
  );
  const graph = message(
    node.as(1),
    text(2, "attention"),
    ...inputs.map((each) => each.message.as(11)),
    ...outputs.map((each) => each.message.as(12)),
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
const elementTypes = { float: 1, int32: 6 } as const;

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

function attribute(name: string, value: number): Message {
  return message(text(1, name), integer(3, value), integer(20, attributeTypes.int));
}

function factor(name: string, value: number): Message {
  return message(text(1, name), float(2, value), integer(20, attributeTypes.float));
}

/** ValueInfoProto of a tensor, of floats unless told. */
function tensor(name: string, shape: readonly number[], elementType: number = elementTypes.float): NamedMessage {
  const dimensions = shape.map((extent) => message(integer(1, extent)).as(1));
  const type = message(integer(1, elementType), message(...dimensions).as(2));
  return { name, message: message(text(1, name), message(type.as(1)).as(2)) };
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
