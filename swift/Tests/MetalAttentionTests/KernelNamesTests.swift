import Testing

@testable import MetalAttention

@Suite struct KernelNamesTests {
  @Test(arguments: [
    ("kernel void add(device float *a [[buffer(0)]]) {}", ["add"]),
    ("[[kernel]] void add(device float *a [[buffer(0)]]) {}", ["add"]),
    ("[[max_total_threads_per_threadgroup(64)]] kernel void add(uint i [[thread_position_in_grid]]) {}", ["add"]),
    ("template <typename T> [[kernel]] void add(device T *a) {}", []),
    ("template [[host_name(\"add_f32\")]] [[kernel]] void add<float>(device float *a);", ["add_f32"]),
    ("template [[host_name(\"add_f32\")]] kernel decltype(add<float>) add<float>;", ["add_f32"]),
    ("// kernel void no();\n/* kernel void no(); */ kernel void yes() {}", ["yes"]),
    ("#define K kernel void no() \\\n  kernel void no()\nkernel void yes() {}", ["yes"]),
    ("constant char text[] = \"kernel void no()\"; kernel void yes() {}", ["yes"]),
    ("void helper() {}\nkernel void a() { helper(); }\nkernel void b() {}", ["a", "b"]),
    ("", []), ("/*", []), ("\"", []), ("kernel", []), ("host_name", []),
  ])
  func namesAreReadFromText(source: String, names: [String]) {
    #expect(KernelNames.scan(source) == names)
  }

  @Test func includesAreReplacedAndLinesStay() {
    let text = expand(
      "a\n  # include  \"hadamard_formats.h\" // formats\nb\n#include \"other.h\"", name: "my \"file\".metal")
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines[0] == "#line 1 \"my \\\"file\\\".metal\"")
    #expect(lines[1] == "a")
    #expect(lines[3] == "#ifndef MA_INCLUDED_0")
    #expect(lines[5] == "#line 1 \"hadamard_formats.h\"")
    #expect(text.contains("\n#line 1 \"hadamard_codebooks.h\"\n"))
    #expect(text.hasSuffix("#endif\n#line 2 \"my \\\"file\\\".metal\"\n // formats\nb\n#include \"other.h\"\n"))
    #expect(!text.contains("\n#pragma once"))
  }

  @Test func linesBehindALineDirectiveAreCountedFromIt() {
    let text = expand(
      "#line 40\n#include \"ShaderTypes.h\"\n#line 7 \"other.metal\"\n\n#include \"ShaderTypes.h\"", name: "my.metal")
    #expect(text.contains("#endif\n#line 40 \"my.metal\"\n"))
    // The second copy is left out: the line behind it keeps its number.
    #expect(text.contains("\n#line 7 \"other.metal\"\n\n#line 8 \"other.metal\"\n"))
  }

  @Test func headersInFoldersAreFound() {
    let text = expand("#include \"common/ring.h\"\na", name: "my.metal")
    #expect(text.contains("\n#ifndef MA_INCLUDED_0\n"))
    #expect(text.contains("\n#line 1 \"common/ring.h\"\n"))
    #expect(text.contains("inline uint ring_slot("))
    #expect(expand("#include \"ring.h\"", name: "my.metal").contains("#include \"ring.h\""))
  }

  private func expand(_ text: String, name: String) -> String {
    var include = ShaderInclude([:])
    return include.expand(text, name: name)
  }
}
