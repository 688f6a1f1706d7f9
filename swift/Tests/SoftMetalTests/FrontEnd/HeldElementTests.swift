import Testing

@testable import SoftMetal

@Suite struct HeldElementTests {
  func isHeld(_ statements: String, and functions: String = "") throws -> Bool {
    let text =
      "\(functions)\nkernel void k(device float *out [[buffer(0)]]) { simdgroup_float8x8 m[2], n; \(statements) }"
    let source = SourceText(Array(text.utf8))
    let lowered = try Lowering.program(source, origin: SourceOrigin(label: "test.metal", source: source))
      .shader(kernel: nil, needingLanes: [])
    return lowered.macros.contains("SM_HELD_ELEMENTS")
  }

  @Test(arguments: [
    "thread auto &e = n.thread_elements(); simdgroup_multiply(n, m[0], m[1]); out[0] = e[0];",
    "thread float2 *e = &m[0].thread_elements(); simdgroup_store(m[0], out); *e = 1;",
    "thread auto &e = n.thread_elements(); n = m[0]; e[0] = 1;",
    "thread auto &e = n.thread_elements(); for (int k = 0; k < 2; k += 1) { out[k] = e[0]; simdgroup_load(n, out); }",
    "thread auto &e = n.thread_elements(); for (int k = 0; k < 2; k += 1) if (e[0] > 0) simdgroup_load(n, out);",
    "if (out[0] > 0) { auto &&e = n.thread_elements(); work(); e *= 2; }",
    "take(n.thread_elements());",
    "out[0] = give(n)[0];",
  ])
  func held(statements: String) throws {
    let functions = """
      void work() {} void take(thread float2 &e) {}
      thread float2 &give(thread simdgroup_float8x8 &m) {
        if (true) { if constexpr (true) { return m.thread_elements(); } }
      }
      """
    #expect(try isHeld(statements, and: statements.has("give") ? functions : String(functions.prefix { $0 != "\n" })))
  }

  @Test(arguments: [
    "simdgroup_multiply(n, m[0], m[1]); out[0] = n.thread_elements()[0];",
    "thread auto &e = n.thread_elements(); e[0] = 1; simdgroup_store(n, out);",
    "for (int k = 0; k < 2; k += 1) { thread auto &e = m[k].thread_elements(); e *= exp2(e); } simdgroup_store(n, out);",
    "const float2 e = n.thread_elements(); simdgroup_load(n, out); out[0] = e[0];",
    "reinterpret_cast<thread float2 &>(n.thread_elements()) = float2(1); simdgroup_store(n, out);",
    "out[0] = value(n)[0] + length(n.thread_elements()); simdgroup_store(n, out);",
  ])
  func usual(statements: String) throws {
    #expect(
      try !isHeld(statements, and: "float2 value(thread simdgroup_float8x8 &m) { return m.thread_elements(); }"))
  }
}
