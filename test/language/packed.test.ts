/** Packed vectors straight from device, constant and threadgroup memory, and in structs: used as vectors are. */
import { type Case, floats, ints, languageSuite, range } from "./harness.ts";
import { encoded, numberTypes } from "./numbers.ts";

const cases: Case[] = numberTypes.flatMap((type): Case[] => [
  ...[2, 3, 4].map((n): Case => {
    const p = range(n, (k) => k + 1);
    const q = range(n, (k) => 2 * k + 3);
    return {
      name: `packed_${type}${n} in device memory: arithmetic, assignment, components, conversion`,
      code: `typedef packed_${type}${n} P; typedef ${type}${n} V; const device P *p = (const device P *)a; const device P *q = p + 1; device P *r = (device P *)out;
        const ${type} two = 2; r[0] = p[i] * two; r[1] = p[i] + q[i]; r[2] = p[0]; r[2] += q[0]; r[2] *= two; r[3] = q[0] - *p; r[4] = V(p[0]) + V(1);
        r[5][${n - 1}] = p[0][1]; r[5].x = q->y; r[6] = p[0]; r[6]++; --r[6]; r[6] -= V(1); r[7] = select(p[0], V(9), p[0] < V(2)); r[8] = i == 0 ? p[0] : q[0];
        r[9] = two * p[0]; r[10] = max(p[0], V(2)); V v = r[10]; v = p[1]; r[11] = v; r[12] = any(p[0] == q[0]) ? v : V(3);`,
      out: type,
      threads: 1,
      inputs: [{ type, values: encoded(type, [...p, ...q]) }],
      expected: encoded(type, [
        ...p.map((x) => 2 * x),
        ...p.map((x, k) => x + (q[k] ?? 0)),
        ...p.map((x, k) => 2 * (x + (q[k] ?? 0))),
        ...p.map((x, k) => (q[k] ?? 0) - x),
        ...p.map((x) => x + 1),
        ...range(n, (k) => (k === n - 1 ? 2 : k === 0 ? 5 : 0)),
        ...p.map((x) => x - 1),
        ...p.map((x) => (x < 2 ? 9 : x)),
        ...p,
        ...p.map((x) => 2 * x),
        ...p.map((x) => Math.max(x, 2)),
        ...q,
        ...range(n, () => 3),
      ]),
    };
  }),
  {
    name: `packed_${type}3 swizzled on both sides, in arrays of structs, threadgroup memory and locals`,
    code: `struct Item { packed_${type}3 list[2]; ${type} w; }; const device Item *in = (const device Item *)a; device Item *to = (device Item *)out;
      threadgroup packed_${type}3 box[2]; box[1] = in[0].list[1]; box[0].zy = box[1].xy; box[0].x = in->w; Item mine = in[0]; mine.list[0].xz = mine.list[0].zx;
      to[0].list[0] = mine.list[0]; to[0].list[1] = box[0].zyx; to[0].w = box[1][2]; to[1].list[0].yz = in[0].list[1].rg; to[1].list[1].xy += in[0].list[0].yy;
      to[1].list[0].r = in[0].list[0].b; to[1].w = in[0].list[0].zyx.x;`,
    out: type,
    threads: 1,
    inputs: [{ type, values: encoded(type, [1, 2, 3, 4, 5, 6, 7]) }],
    expected: encoded(type, [3, 2, 1, 4, 5, 7, 6, 3, 4, 5, 2, 2, 0, 3]),
  },
]);
cases.push(
  {
    name: "arguments of functions: vectors, packed vectors, references, templates, the functions of metal_stdlib",
    code: `const device packed_float3 *p = (const device packed_float3 *)a; device packed_float3 *o = (device packed_float3 *)out; constant float3 &up = kUp;
      o[0] = twice(p[0]); o[1] = sum(p[0], p[1]); bump(o[1]); o[2] = third(p[1]); o[3] = cross(p[0], p[1]) + normalize(p[0]) * length(p[0]);
      out[12] = dot(p[0], p[1]); out[13] = distance(p[1], up); out[14] = sizeof(p[0]); shift(&o[2]); o[5] = mix(p[0], p[1], 0.5f); o[6] = clamp(p[1], 4.5f, 5.5f);
      o[7] = fma(p[0], p[1], float3(1)); device packed_float3 &last = o[8]; last = p[0]; last.y = 9; last *= 2; const device packed_float3 &first = p[0]; out[27] = first.z + last[0];`,
    out: "float",
    threads: 1,
    inputs: [floats([1, 2, 2, 4, 5, 6])],
    expected: [
      2,
      4,
      4,
      6,
      8,
      9,
      7,
      6,
      6,
      3,
      4,
      -1,
      26,
      Math.hypot(4, 4, 6),
      12,
      2.5,
      3.5,
      4,
      4.5,
      5,
      5.5,
      5,
      11,
      13,
      2,
      18,
      4,
      4,
    ],
    ulps: 1,
  },
  {
    name: "members of nested structs in constant and device memory, by pointer, reference and index",
    code: `constant Scene &scene = *(constant Scene *)kScenes; device Scene *to = (device Scene *)out; to[0].lights[1].place = scene.lights[0].place + scene.origin;
      to->origin = scene.lights[1].place.zyx * scene.scale; thread Light light = {packed_float3(7, 8, 9)}; thread Light &l = light; l.place.xy -= 1; l.place[2] = scene.origin[1];
      to[0].lights[0] = l; to[0].scale = dot(light.place, scene.lights[1].place) + scene.lights[0].place[2] + (*to).origin.x;`,
    out: "float",
    threads: 1,
    expected: [12, 10, 8, 6, 7, 20, 11, 22, 33, 6 * 4 + 7 * 5 + 20 * 6 + 3 + 12],
  },
  {
    name: "through casts, aliases, templates and pointers that move",
    code: `using vec3 = packed_half3; typedef packed_int3 triple; const device triple *t = (const device triple *)b; const float3 x = float3(((const device packed_float3 *)a)[1]) * 2;
      out[0] = x.z; out[1] = dot(*(const device packed_float3 *)a, x); const device packed_float3 *q = reinterpret_cast<const device packed_float3 *>(a) + 1; out[2] = (*q++).x; q -= 2;
      out[3] = (*q * 2).y; vec3 h = vec3(t[0]); h += half3(0.5h); out[4] = float(h.y); out[5] = total((const device packed_float3 *)a, 2); out[6] = int3(t[1]).z + t[1][0]; out[7] = (t[0] << 1).y;
      out[8] = float((t[0] | t[1]).x) + float3(t[0] > t[1]).z; const auto kept = t[1]; out[9] = kept.y; out[10] = -q[0].x; out[11] = all(~t[0] == int3(-1) - t[0]);`,
    out: "float",
    threads: 1,
    inputs: [floats([1, 2, 3, 4, 5, 6]), ints([1, 2, 30, 4, 5, 6])],
    expected: [12, 8 + 20 + 36, 4, 4, 2.5, 21, 6 + 4, 4, 6, 5, -1, 1],
  },
);
languageSuite(
  "packed",
  `struct Light { packed_float3 place; };
struct Scene { packed_float3 origin; Light lights[2]; float scale; };
constant float3 kUp = float3(0, 1, 0);
constant float kScenes[] = {10, 20, 30, 1, 2, 3, 4, 5, 6, 2};
float3 twice(float3 v) { return v * 2; }
packed_float3 third(packed_float3 v) { v.yz = v.xx; return v; }
template <typename T> T sum(T x, T y) { return x + y; }
void bump(device packed_float3 &v) { v.x += 1; v[1] += 1; v.z = v.z + 1; }
void shift(device packed_float3 *v) { *v += 1; v->x = v[0].x + 2; v->yz = v->zy + 1; }
template <typename P> float total(const device P *p, int n) { float3 s = 0; for (int k = 0; k < n; k++) { s += p[k]; } return s.x + s.y + s.z; }`,
  cases,
);
const vertex = `
struct Vertex { packed_float3 position; float weight; };
float3 position(const device Vertex *from, uint k) { return from[k].position; }
float3 centre(constant Vertex &v) { return v.position; }
`;
languageSuite("packed_members", vertex, [
  {
    name: "packed vectors become vectors where they initialise, are assigned or returned",
    code: `const device packed_float3 *p = (const device packed_float3 *)a; const device Vertex *v = (const device Vertex *)a; float3 x = p[1], y = *p;
      x = p[0]; threadgroup packed_half3 box[2]; box[0] = half3(1, 2, 3); const half3 h = box[0]; float w = v->position.y; y = v[1].position;
      out[0] = x.y; out[1] = y.x; out[2] = h.z; out[3] = w; out[4] = position(v, 1).z; const float3 z = v[0].position; out[5] = z.z; out[6] = p[0].x;`,
    out: "float",
    threads: 1,
    inputs: [floats([1, 2, 3, 4, 5, 6, 7, 8])],
    expected: [2, 5, 3, 2, 7, 3, 1],
  },
  {
    name: "packed vectors read from device memory",
    code: `const device packed_float3 *p = (const device packed_float3 *)a; const packed_float3 t = p[1]; const float3 v = t; const float3 w = float3(p[0]);
      const packed_float2 q = ((const device packed_float2 *)(a + 1))[1]; out[0] = v.x; out[1] = v.z; out[2] = w.y; out[3] = q.x;
      out[4] = p[1].y; out[5] = dot(v, w); out[6] = (float3(p[0]) * 2.0f).x; out[7] = float2(q).y;`,
    out: "float",
    threads: 1,
    inputs: [floats([1, 2, 3, 4, 5, 6])],
    expected: [4, 6, 2, 4, 5, 32, 2, 5],
  },
]);
