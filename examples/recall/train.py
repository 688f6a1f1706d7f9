"""Trains the byte-level model beside it, on a machine with PyTorch and a GPU: python3 train.py --out FOLDER

Writes config.json, tokenizer.json, tokenizer_config.json and model.safetensors (bfloat16) of a Llama model. Texts come
from text.py by `--seed`. The steps of a stage are what `--seconds` leaves time for; they are printed, and `--steps`
takes them again.
"""

import argparse
import json
import math
import multiprocessing
import time
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from text import HERE, Writer, documentation

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 256,
    "hidden_size": 192,
    "intermediate_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "attention_bias": False,
    "mlp_bias": False,
    "torch_dtype": "bfloat16",
    "eos_token_id": 10,
}
# Bytes of a text, texts a step, part of the time.
STAGES = [(1024, 256, 0.45), (4096, 64, 0.35), (8192, 32, 0.2)]
LEARNING_RATE = 3e-3
ANSWER_WEIGHT = 4.0


class Norm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), CONFIG["rms_norm_eps"])


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        hidden, inner, dim = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["head_dim"]
        self.heads, self.kv_heads, self.dim = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"], dim
        linear = lambda i, o: torch.nn.Linear(i, o, bias=False)
        self.input_layernorm = Norm(hidden)
        self.self_attn = torch.nn.ModuleDict(
            {
                "q_proj": linear(hidden, self.heads * dim),
                "k_proj": linear(hidden, self.kv_heads * dim),
                "v_proj": linear(hidden, self.kv_heads * dim),
                "o_proj": linear(self.heads * dim, hidden),
            }
        )
        self.post_attention_layernorm = Norm(hidden)
        self.mlp = torch.nn.ModuleDict(
            {"gate_proj": linear(hidden, inner), "up_proj": linear(hidden, inner), "down_proj": linear(inner, hidden)}
        )

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        a, h = self.self_attn, self.input_layernorm(x)
        split = lambda t, n: t.view(batch, length, n, self.dim).transpose(1, 2)
        v = split(a["v_proj"](h), self.kv_heads)
        q = turn(split(a["q_proj"](h), self.heads).float(), cos, sin).to(v.dtype)
        k = turn(split(a["k_proj"](h), self.kv_heads).float(), cos, sin).to(v.dtype)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + a["o_proj"](out.transpose(1, 2).reshape(batch, length, -1))
        h = self.post_attention_layernorm(x)
        return x + self.mlp["down_proj"](F.silu(self.mlp["gate_proj"](h)) * self.mlp["up_proj"](h))


def turn(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(CONFIG["vocab_size"], CONFIG["hidden_size"])
        self.layers = torch.nn.ModuleList(Layer() for _ in range(CONFIG["num_hidden_layers"]))
        self.norm = Norm(CONFIG["hidden_size"])
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                deep = name.endswith(("o_proj.weight", "down_proj.weight"))
                torch.nn.init.normal_(weight, std=0.02 / (math.sqrt(2 * len(self.layers)) if deep else 1))
        half = CONFIG["head_dim"] // 2
        frequency = CONFIG["rope_theta"] ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(CONFIG["max_position_embeddings"], dtype=torch.float64)[:, None] * frequency
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, cos, sin)
        return F.linear(self.norm(x), self.embed_tokens.weight)


def loss_of(model, ids, weights):
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    weights = weights[:, 1:].flatten()
    return (loss * weights).sum() / weights.sum()


def texts(task):
    """A batch of texts [count, length] and the weight of each byte."""
    seed, length, count, pages = task
    writer = Writer(seed, pages)
    ids = numpy.empty((count, length), numpy.uint8)
    weights = numpy.ones((count, length), numpy.float32)
    for row in range(count):
        text, spans = writer.document(length)
        ids[row] = numpy.frombuffer(text, numpy.uint8)
        for begin, end, *_ in spans:
            weights[row, begin:end] = ANSWER_WEIGHT
    return ids, weights


def batches(pool, seed, length, count, pages):
    """Batches without end, each written by several processes ahead of time."""
    parts = 4
    tasks = ((seed + i, length, count // parts, pages) for i in range(1 << 30))
    waiting, results = [], []
    for task in tasks:
        waiting.append(pool.apply_async(texts, (task,)))
        if len(waiting) < 24:
            continue
        results.append(waiting.pop(0).get())
        if len(results) == parts:
            yield tuple(torch.from_numpy(numpy.concatenate(x)).pin_memory().cuda(non_blocking=True) for x in zip(*results))
            results = []


@torch.no_grad()
def recall(model, pages, length, count, isShort=False):
    """Of values asked for, by kind and by how far back they stand: how many are right in every byte."""
    writer, right = Writer(10**9 + length, pages), {}
    for _ in range(count):
        text, spans = writer.document(length)
        ids = torch.tensor(list(text), device="cuda")[None]
        with torch.autocast("cuda", torch.bfloat16):
            best = model(ids[:, :-1]).argmax(-1)[0]
        good = (best == ids[0, 1:]).tolist()
        for begin, end, distance, kind in spans:
            hits = right.setdefault(kind if isShort or kind == "copy" else f"{kind} {distance // 1000}000", [0, 0])
            hits[0] += all(good[begin - 1 : end - 1])
            hits[1] += 1
    return {key: f"{hits}/{of}" for key, (hits, of) in sorted(right.items())}


@torch.no_grad()
def bits_a_byte(model, pages):
    total = 0.0
    for page in pages:
        ids = torch.tensor(list(page), device="cuda")[None].long()
        total += loss_of(model, ids, torch.ones_like(ids, dtype=torch.float)).item()
    return total / len(pages) / math.log(2)


def write(model, out):
    out.mkdir(parents=True, exist_ok=True)
    tensors = {f"model.{k}": v.detach().to(torch.bfloat16).cpu().contiguous() for k, v in model.state_dict().items()}
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    write_json = lambda name, value: (out / name).write_text(json.dumps(value, indent=2) + "\n")
    write_json("config.json", CONFIG)
    # Each byte is a token of its own; tokenizer.json names bytes by the characters of byte-level BPE.
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names = {byte: chr(byte) for byte in plain}
    names |= {byte: chr(256 + i) for i, byte in enumerate(b for b in range(256) if b not in names)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    write_json(
        "tokenizer.json",
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": level,
            "post_processor": None,
            "decoder": level,
            "model": {"type": "BPE", "vocab": {names[byte]: byte for byte in range(256)}, "merges": []},
        },
    )
    chat = "\n{% for message in messages %}{{ message.content }}\n{% endfor %}Answer: "
    write_json("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": chat})


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--out", type=Path, default=HERE)
    options.add_argument("--seconds", type=float, default=370.0)
    options.add_argument("--steps", type=lambda text: [int(n) for n in text.split(",")])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rate", type=float, default=LEARNING_RATE)
    options.add_argument("--root", type=Path, default=HERE.parent.parent)
    options = options.parse_args()
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    pages, kept = documentation(options.root)
    pool = multiprocessing.get_context("fork").Pool(14)
    model = Model().cuda()
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {sum(map(len, pages)):,} bytes of pages", flush=True)
    decays = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    groups = [{"params": decays, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, betas=(0.9, 0.98), fused=True)
    step_loss = torch.compile(loss_of, dynamic=False)
    began, done = time.time(), 0.0
    for stage, (length, count, part) in enumerate(STAGES):
        source = batches(pool, options.seed * 10**7 + stage * 10**6, length, count, pages)
        steps = options.steps[stage] if options.steps else None
        step, timed = 0, 0.0
        while steps is None or step < steps:
            if step == 20:
                torch.cuda.synchronize()
                timed = time.time()
            if step == 60 and steps is None:
                torch.cuda.synchronize()
                each = (time.time() - timed) / 40
                steps = max(60, int(part * options.seconds / each))
                print(f"stage {stage}: {steps} steps of {length} x {count}, {1000 * each:.1f} ms", flush=True)
            progress = done + part * (step / steps if steps else 0.0)
            rate = options.rate * min(1.0, (step + 1) / 200 if stage == 0 else 1.0) * min(1.0, (1.02 - progress) / 0.5)
            for group in optimizer.param_groups:
                group["lr"] = rate
            ids, weights = next(source)
            loss = step_loss(model, ids.long(), weights)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            if step % 200 == 0:
                found = recall(model, pages, length, 16, True)
                print(f"{time.time() - began:.0f} s, stage {stage}, step {step}: loss {loss.item():.4f}, {found}", flush=True)
        done += part
        write(model, options.out)
    pool.terminate()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.to(torch.bfloat16))
    print("recall at 4096", recall(model, pages, 4096, 200))
    print("recall at 8192", recall(model, pages, 8192, 100))
    print(f"bits a byte of kept pages: {bits_a_byte(model, kept):.3f}")


if __name__ == "__main__":
    main()
