import type { DeviceSizes } from "./row.ts";

/** Prints the seconds that torch's attention adds to a copy of 1 GiB, by row, as JSON: medians, in turns with the copy. */
const source = `
import json, statistics, sys, torch
from torch.nn.functional import scaled_dot_product_attention as attention
tokens, keys = int(sys.argv[1]), int(sys.argv[2])
flush = torch.empty(2 ** 29, dtype=torch.int16, device="cuda")
other = torch.empty_like(flush)
def behind_copy(call):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    other.copy_(flush)
    call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e-3
def seconds(call):
    times = []
    for _ in range(12):
        alone = behind_copy(lambda: None)
        times.append(behind_copy(call) - alone)
    return statistics.median(times[1:])
def normal(dtype, *shape):
    return torch.randn(*shape, dtype=dtype, device="cuda")
result = {}
for dim in (64, 128, 256, 512):
    q, k, v = (normal(torch.bfloat16, 1, 16, tokens, dim) for _ in range(3))
    result[f"prefill-d{dim}"] = seconds(lambda: attention(q, k, v, is_causal=True))
for batch in (1, 16):
    q = normal(torch.float16, batch, 32, 1, 128)
    k, v = (normal(torch.float16, batch, 8, keys, 128) for _ in range(2))
    result[f"token-f16-b{batch}"] = seconds(lambda: attention(q, k, v, enable_gqa=True))
print(json.dumps(result))
`;

/** Seconds by the name of a row; none where there is no Python with torch and a GPU that it can use. */
export function torchTimes({ tokens, keys }: DeviceSizes): Readonly<Record<string, number>> {
  if (Bun.which("python3") === null) return {};
  const run = Bun.spawnSync(["python3", "-c", source, String(tokens), String(keys)], { stderr: "pipe" });
  return run.success ? (JSON.parse(run.stdout.toString()) as Record<string, number>) : {};
}
