import Testing

@testable import SoftMetal

@Suite struct PreprocessingTests {
  /// What is refused in lines that are not compiled does not count; macros hide nothing.
  @Test(arguments: [
    ("#define N 4\nkernel void f(device int *a) { a[0] = N; }", ["f"]),
    ("#define K kernel void\nK f() {}", ["f"]),
    ("#define BUFFER(n) [[buffer(n)]]\nkernel void f(device int *a BUFFER(0)) {}", ["f"]),
    ("#define OPEN {\nkernel void f() OPEN }", ["f"]),
    (
      "#define INST(n, t) template [[host_name(n)]] kernel void f<t>(device t *);\ntemplate <typename T> kernel void f(device T *a) {}\nINST(\"x\", int)",
      ["x"]
    ),
    ("#define SHARED threadgroup float\nkernel void f() { SHARED x[4]; }", ["f"]),
    ("#if 0\nkernel void f() { double x; }\n#else\nkernel void g() {}\n#endif", ["g"]),
    ("#if 0\nconstant int x [[function_constant(0)]];\n#endif\nkernel void f() {}", ["f"]),
    ("kernel void f(\n#if 1\n device int *a [[buffer(0)]]\n#endif\n) {}", ["f"]),
    ("void g() {}\nvoid f()\n#if 0\n{\n#else\n{ g();\n#endif\n}", []),
    ("#line 1 \"a\"\nker\\\nnel void f() {}", ["f"]),
    ("#line 1 \"a\"\n// no macro\rkernel void f() {}\rkernel void g() {}\r", ["f", "g"]),
    ("#line 1 \"a\"\r\n// no macro\r\nkernel void f() {}\r\nkernel void g() {}\r\n", ["f", "g"]),
    ("%:include <metal_stdlib>\n%:define K kernel\nK void f() {}", ["f"]),
    ("// #define K kernel\n/*\n#define K kernel\n*/\nkernel void f() {}", ["f"]),
    (
      "#include <metal_stdlib>\n#ifdef INFINITY\nkernel void f() {}\n#endif\n#ifndef METAL_FUNC\nkernel void g() {}\n#endif",
      ["f"]
    ),
  ])
  func macrosAndConditionalLines(source: String, names: [String]) throws {
    #expect(try ShaderFolder().compile(source).functionNames == names)
  }

  @Test func macroInstantiationsCompile() throws {
    let folder = try ShaderFolder()
    let compiled = try folder.compile(
      """
      #include <metal_stdlib>
      #include <metal_simdgroup>
      using namespace metal;
      #define instantiate_kernel(name, func, ...) \\
        template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
      #define instantiate(type, n) instantiate_kernel("put_" #type "_" #n, put, type, n)
      template <typename T, int N>
      [[kernel]] void put(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
        out[i] = T(N) + T(MAXFLOAT > 1 ? 1 : 0);
      }
      instantiate(int, 2)
      instantiate(float, 3)
      #if __METAL_VERSION__ >= 310
      instantiate(int, 31)
      #else
      instantiate(int, 0)
      #endif
      """)
    #expect(compiled.functionNames == ["put_int_2", "put_float_3", "put_int_31"])
    #expect(try LoadedShader(compiled, constants: [:]).run("put_int_31", count: 2) == [32, 32])
  }

  @Test func errorsPointIntoTheSource() throws {
    let log = try ShaderFolder().log(
      """
      #include <metal_stdlib>
      #define K kernel void
      K good(device int *out) { out[0] = 1; }

      K bad(device int *out) {   out[0] =   qqqq; }
      """)
    #expect(log.has("test.metal:5:39: error: use of undeclared identifier 'qqqq'\nK bad(device"), "\(log)")
  }

  @Test func failuresOfThePreprocessor() throws {
    let log = try ShaderFolder().log("#define K kernel void\n#error \"not here\"\nK f() {}")
    #expect(log.has("test.metal:2:2: error: \"not here\"\n#error \"not here\"\n ^\n"), "\(log)")
    #expect(
      try ShaderFolder().log("#include \"missing.h\"\n").has("test.metal:1:10: error: 'missing.h' file not found"))
  }

  @Test(arguments: [
    ("#include <metal_stdlib>\nkernel void f() {}", true),
    ("#line 1 \"a.metal\"\n#pragma once\n#line 30\n int x;", true),
    ("#line 1 \"a.metal\" 2", false), ("#line one", false), ("#line 1 + 1", false), ("#line", false),
    ("# 1 \"a.metal\"", false), ("#define X 1", false), ("#if 1\n#endif", false), ("#include \"a.h\"", false),
    ("int x = __LINE__;", false), ("_Pragma(\"unroll\")", false), ("a /* b *//* c", false), ("a /*/ b", false),
    ("/* a */ // b", true),
    ("int x; // b /*", true),
    ("int x \\\n= 3;", false), ("int x \\ \n= 3;", false), ("int x \\\r\n= 3;", false), ("char x = '\\n';", true),
    ("int x;\rint y;\r", false), ("int x;\r", true), ("int x;\r\nint y;\r\n", true),
    ("%:include <metal_stdlib>", false),
  ])
  func whatThePreprocessorWouldLeaveAsItIs(_ source: String, _ isLeft: Bool) {
    #expect(Preprocessing.isIdentity(SourceText(Array(source.utf8))) == isLeft)
  }

  /// As it is, and preprocessed.
  @Test(arguments: ["", "#define Q q\n"])
  func errorsAreWhereLinesSayThatTheyComeFrom(_ first: String) throws {
    let log = try ShaderFolder().log(
      first + #"""
        #line 7 "a \"b\" \\c.metal"
        kernel void f() {
        #line 30
          int x = q; }
        """#)
    #expect(log.has("a \"b\" \\c.metal:30:11: error: use of undeclared identifier 'q'\n  int x = q; }\n"), "\(log)")
  }

  @Test func linesOfCommentsAreNoDirectives() throws {
    let log = try ShaderFolder().log(
      """
      /* Steps:
      # 1 of them
      #line 50 "else" */
      kernel void f() { int x = q; }
      """)
    #expect(log.has("test.metal:4:27: error: use of undeclared identifier 'q'\nkernel void f() {"), "\(log)")
  }

  @Test(arguments: ["", "#define Q q\n"])
  func aLabelMayHaveAnyCharacter(_ first: String) throws {
    let label = "a \"b\" \\c\td.metal"
    let folder = try ShaderFolder()
    let error = compilerError { try folder.compile(first + "kernel void f() { int x = q; }", label: label) }
    #expect(error?.message.hasPrefix("\(label):\(first.isEmpty ? 1 : 2):27: error: use of undeclared") == true)
  }
}
