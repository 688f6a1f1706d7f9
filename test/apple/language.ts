/**
 * What the shaders may use of the Metal Shading Language 3.1, by the chapters of its specification. A word that a
 * shader neither declares itself nor finds here is refused: a compiler that is not Apple's may know more words.
 */
const documented = {
  /** C++14, without what section 1.5.4 takes away (goto, new, virtual, try, ...). */
  keywords: `auto break case class const constexpr continue decltype default do else enum explicit false for friend if
    inline mutable namespace nullptr operator private public return sizeof static static_assert static_cast
    reinterpret_cast const_cast struct switch template this true typedef typename union using volatile while`,
  addressSpaces: "device constant thread threadgroup kernel",
  scalars: `bool char uchar short ushort int uint long ulong half float bfloat void size_t ptrdiff_t signed unsigned
    int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t`,
  vectors: ["bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "bfloat"]
    .flatMap((scalar) => [2, 3, 4].flatMap((n) => [`${scalar}${n}`, `packed_${scalar}${n}`]))
    .join(" "),
  types:
    "vec atomic_int atomic_uint atomic_float simdgroup_matrix simdgroup_float8x8 simdgroup_half8x8 true_type false_type",
  attributes: `buffer threadgroup function_constant host_name kernel max_total_threads_per_threadgroup
    thread_position_in_grid thread_position_in_threadgroup thread_index_in_threadgroup thread_index_in_simdgroup
    threadgroup_position_in_grid threadgroups_per_grid threads_per_threadgroup threads_per_grid
    dispatch_threads_per_threadgroup simdgroup_index_in_threadgroup simdgroups_per_threadgroup threads_per_simdgroup`,
  functions: `abs all any as_type ceil clamp clz copysign cos cospi ctz dot exp exp2 exp10 fabs floor fma fmax fmin fract frexp
    isfinite isinf isnan isunordered ldexp length log log2 max min mix popcount pow precise fast rint round rsqrt saturate select sign
    sin sinpi sqrt step tanh trunc extract_bits insert_bits reverse_bits rotate mulhi mad24 mul24 hadd absdiff`,
  simdgroup: `simd_all simd_any simd_ballot simd_vote vote_t simd_broadcast simd_broadcast_first simd_max simd_min simd_or simd_and simd_xor
    simd_prefix_exclusive_sum simd_prefix_inclusive_sum simd_product simd_shuffle simd_shuffle_down simd_shuffle_up
    simd_shuffle_xor simd_shuffle_rotate_down simd_shuffle_rotate_up simd_sum quad_sum quad_shuffle_xor`,
  matrices: `simdgroup_load simdgroup_store simdgroup_multiply simdgroup_multiply_accumulate thread_elements
    make_filled_simdgroup_matrix`,
  synchronization: `threadgroup_barrier simdgroup_barrier mem_flags mem_none mem_device mem_threadgroup
    mem_threadgroup_imageblock atomic_fetch_add_explicit atomic_load_explicit atomic_store_explicit memory_order_relaxed`,
  constants: `INFINITY NAN FLT_MAX FLT_MIN HALF_MAX M_PI_F M_LN2_F M_LOG2E_F M_SQRT2_F M_SQRT1_2_F numeric_limits infinity
    is_function_constant_defined`,
  namespaces: "metal",
  headers: `metal_stdlib metal_simdgroup metal_simdgroup_matrix metal_math metal_atomic metal_integer metal_common`,
  preprocessor: `include define undef if ifdef ifndef else elif endif defined line pragma once error __METAL_VERSION__
    __VA_ARGS__`,
} as const;

/** All documented words. */
const allowed = new Set(Object.values(documented).flatMap((words) => words.split(/\s+/)));
const keywords = new Set(documented.keywords.split(/\s+/));
const documentedTypes = new Set(
  [documented.scalars, documented.vectors, documented.types, "auto"].flatMap((words) => words.split(/\s+/)),
);

/** What C++ has and a shader must not: some of it is made of punctuation alone. */
const forbidden: readonly (readonly [RegExp, string])[] = [
  [/\b(?:struct|class)\s+\w+\s*(?:<[^;{]*>\s*)?(?:final\s*)?:(?!:)/, "a derived class"],
  [/[=(,]\s*\[[&=\w\s,]*\]\s*[({]/, "a lambda"],
  [/\b\w+\s*\(\s*\*\s*\w+\s*\)\s*\(/, "a pointer to a function"],
  [/\boperator\s*""/, "a literal operator"],
  [/\b\d*\.\d+(?:e[+-]?\d+)?l\b/i, "a long double literal"],
  [/\blong\s+long\b|\b\d[\da-fx]*u?llu?\b/i, "a long long"],
  [/\b0x[\da-f.]+p/i, "a hexadecimal float literal"],
];

/** A word or a sign of a text, and the line it is on. */
interface Token {
  readonly text: string;
  readonly line: number;
}

function tokens(text: string): Token[] {
  const list: Token[] = [];
  let line = 1;
  for (const [piece] of text.matchAll(/\n|"(?:[^"\\\n]|\\.)*"|\d[\w.]*|[A-Za-z_]\w*|[^\s\w]/g)) {
    if (piece === "\n") line++;
    else list.push({ text: piece, line });
  }
  return list;
}

/** Hints to the compiler that Apple's takes as well. */
const pragmas =
  /^[ \t]*#pragma (?:clang (?:loop (?:unroll\((?:full|disable)\)|unroll_count\(\d+\))|fp contract\((?:off|fast)\))|METAL fp contract\(off\))[ \t]*$/gm;

/** What a header has for compilers of other languages. */
const otherLanguages = /(?<=#ifdef __METAL_VERSION__\n[^#]*)#else\n[\s\S]*?(?=#endif)/g;

/** The text without comments, known pragmas and what is not for Metal, its lines in place. */
function plainText(text: string): string {
  const blank = (part: string): string => part.replace(/[^\n]/g, " ");
  return [/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, pragmas, otherLanguages].reduce(
    (rest, part) => rest.replace(part, blank),
    text,
  );
}

const isWord = (token: Token | undefined): boolean => token !== undefined && /^[A-Za-z_]/.test(token.text);

/** Names of types and of all else that the texts declare. */
function declared(lists: readonly Token[][]): Set<string> {
  const types = new Set(documentedTypes);
  const names = new Set<string>();
  for (const list of lists) {
    for (const [i, token] of list.entries()) {
      const before = list[i - 1]?.text ?? "";
      if (isWord(token) && ["struct", "class", "enum", "union", "using", "typename", "define"].includes(before)) {
        types.add(token.text);
      }
      // typedef TYPE NAME;
      if (list[i + 1]?.text === ";" && list[i - 2]?.text === "typedef") types.add(token.text);
    }
  }
  for (const list of lists) {
    for (const [i, token] of list.entries()) {
      if (!isWord(token) || keywords.has(token.text)) continue;
      let k = i - 1;
      while (["*", "&", "const", "constexpr"].includes(list[k]?.text ?? "")) k--;
      const before = list[k]?.text ?? "";
      // A type, a template's arguments (of a reference too) or an attribute stand before a name that is declared.
      const isReference = k === i - 2 && list[i - 1]?.text === "&";
      if (types.has(before) || (before === ">" && (k === i - 1 || isReference))) names.add(token.text);
    }
    for (const [i, token] of list.entries()) {
      // The enumerators of an enumeration without a name.
      if (token.text === "{" && list[i - 1]?.text === "enum") {
        for (let k = i + 1; k < list.length && list[k]?.text !== "}"; k++) {
          if (isWord(list[k])) names.add((list[k] as Token).text);
        }
      }
      // More names of one declaration, and the enumerators of an enumeration.
      if (isWord(token) && list[i - 1]?.text === "," && names.has(firstOfDeclaration(list, i))) names.add(token.text);
    }
  }
  return new Set([...types, ...names]);
}

/** Names of the parameters of a text's macros. */
function macroParameters(plain: string): Set<string> {
  return new Set([...plain.matchAll(/^#define \w+\(([\w, .]*)\)/gm)].flatMap(([, names = ""]) => names.split(/\W+/)));
}

/** The name that a declaration of several names begins with, as in `int a = 1, b;`. */
function firstOfDeclaration(list: readonly Token[], at: number): string {
  let depth = 0;
  for (let i = at - 1; i >= 0; i--) {
    const { text } = list[i] as Token;
    if (")]}".includes(text)) depth++;
    else if ("([{".includes(text)) {
      if (depth-- === 0) return "";
    } else if (depth === 0 && text === ";") return "";
    else if (depth === 0 && documentedTypes.has(text)) return list[i + 1]?.text ?? "";
  }
  return "";
}

/**
 * What a shader uses that the language does not document, a line each: `file:line: ...`.
 * `headers` are the texts that it includes.
 */
export function undocumented(file: string, text: string, headers: readonly string[]): string[] {
  const plain = plainText(text);
  const list = tokens(plain);
  const known = declared([list, ...headers.map((header) => tokens(plainText(header)))]);
  const parameters = macroParameters(plain);
  const found: string[] = [];
  for (const [pattern, what] of forbidden) {
    const match = pattern.exec(plain);
    if (match) found.push(`${file}:${plain.slice(0, match.index).split("\n").length}: ${what}: ${match[0].trim()}`);
  }
  for (const [i, token] of list.entries()) {
    if (!isWord(token) || known.has(token.text) || parameters.has(token.text) || allowed.has(token.text)) continue;
    const before = list[i - 1]?.text ?? "";
    // A member of a vector by its letters.
    if (before === "." && /^(?:[xyzw]{1,4}|[rgba]{1,4})$/.test(token.text)) continue;
    found.push(`${file}:${token.line}: ${token.text}`);
  }
  return found;
}
