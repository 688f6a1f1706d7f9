import Testing

@testable import SoftMetal

@Suite struct DiagnosticTests {
  let folder: ShaderFolder

  init() throws {
    folder = try ShaderFolder()
  }

  @Test func columnsAreTheUsersAfterEdits() throws {
    let line = "kernel void f(device float4 *a [[buffer(0)]]) { threadgroup float x[2]; a[0] = float4(1) + wrong; }"
    let column = 1 + line.split(separator: "wrong")[0].utf8.count
    let log = try folder.log("#include <metal_stdlib>\nusing namespace metal;\n\(line)\n")
    #expect(
      log.has("test.metal:3:\(column): error: use of undeclared identifier 'wrong'\n\(line)\n"), "\(log)")
    #expect(log.has("\n" + String(repeating: " ", count: column - 1) + "^\n"))
    #expect(log.has("1 error generated."))
    #expect(!log.has("/"), "\(log)")
  }

  @Test func addressSpacesHaveTheirNames() throws {
    let log = try folder.log("kernel void f(device float *a) {\n\tthreadgroup float *p = a;\n}")
    #expect(log.has("test.metal:2:21: error: "), "\(log)")
    #expect(log.has("device float"), "\(log)")
    #expect(log.has("\n\t                   ^\n"), "\(log)")
    #expect(!log.has("address_space"))
  }

  @Test func errorsInHeadersNameTheHeaderAlone() throws {
    let log = try folder.log(
      """
      #include <metal_stdlib>
      using namespace metal;
      kernel void f(device float4 *a) { a[0] = float4(1, 2); }
      """)
    #expect(log.has("test.metal:3:"), "\(log)")
    #expect(!log.has(folder.path), "\(log)")
  }

  @Test func lineDirectivesAreFollowed() throws {
    let source = """
      #line 1 "types.h"
      struct A { int x; };
      #line 1 "main.metal"
      kernel void f(device A *a [[buffer(0)]]) {
        a->y = 1;
      #line 10
        a->z = 1;
      }
      """
    for extra in ["", "\n#define K kernel"] {
      let log = try folder.log(source + extra)
      #expect(log.has("main.metal:2:6: error: no member named 'y'"), "\(log)")
      #expect(log.has("\n  a->y = 1;\n     ^\n"), "\(log)")
      #expect(log.has("main.metal:10:6: error: no member named 'z'"), "\(log)")
    }
    #expect(try folder.log(source + "\nkernel int g() {}").has("main.metal:12:12: error: kernel 'g' must return void"))
  }

  @Test func warningsAreKept() throws {
    let source = "kernel void f(device float *a) { a[0] = 1;\n#warning careful\n}"
    let compiled = try folder.compile(source)
    #expect(compiled.log.has("test.metal:2:2: warning: careful"))
    #expect(try folder.compile(source).log == compiled.log)
  }

  @Test func labelsMayHoldAnything() throws {
    for label in ["a b.metal", "quote\".metal", "back\\slash.metal", "colon:1:2.metal", "line\nbreak"] {
      let error = compilerError {
        try folder.compile("kernel void f(device int *a) {\n  a[0] = x;\n}", label: label)
      }
      #expect(error?.message.has("\(label):2:10: error: ") == true, "\(error?.message ?? "")")
    }
  }

  @Test(arguments: [
    "", "}", "{", "kernel", "kernel void", "kernel void f(", "kernel void f() {", "[[", "[[kernel", "template <",
    "template [[host_name(\"x\")]] kernel", "constant int x [[function_constant(0)]]", "struct", "struct S {",
    "#define", "#if 1", "threadgroup", "kernel void f() { threadgroup }", "kernel void f() { threadgroup int x[ }",
    "is_function_constant_defined(", "using X =", "typedef", "float4(", "static_cast<", "namespace a {",
    "extern \"C\" {",
    "operator", "kernel void f(device int *a [[buffer()]]) {}", "\"", "'", "R\"(", "/*", "\\", "\u{0}", "é kernel",
    "kernel void f(,) {}", "template <> kernel void f() {}", "kernel kernel kernel", ")(", "]][[",
    "kernel void f[[]]() {}",
  ])
  func brokenSourcesGiveErrorsOnly(source: String) throws {
    do {
      _ = try folder.compile(source)
    } catch let error as ShaderCompilerError {
      #expect(error.kind == .compileFailure, "\(source): \(error.message)")
    }
  }
}
