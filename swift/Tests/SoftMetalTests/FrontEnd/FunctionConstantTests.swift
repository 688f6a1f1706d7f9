import Testing

@testable import SoftMetal

@Suite struct FunctionConstantTests {
  @Test func becomesAVariableAndAFlag() throws {
    let lowered = try Lowered("constant uint n [[function_constant(7)]];\nkernel void f(device uint *a) { a[0] = n; }")
    #expect(
      lowered.body.squeezed.has(
        "SM_CONSTANT_STORAGE uint n SM_SYMBOL(constant, 0) = {} ; "
          + "SM_CONSTANT_STORAGE unsigned char sm_defined_n SM_SYMBOL(defined, 0) = 0;"))
    #expect(
      lowered.tail.has("{\"n\", 7, sizeof(n), \"uint\", SM_CONSTANT_ADDRESS(n), &sm_defined_n}"))
  }

  @Test(arguments: [
    "constant bool x [[function_constant(A + 1)]];", "const constant bool x [[ function_constant(2) ]];",
    "static constant bool x[[function_constant(3)]];", "constant const bool x [[function_constant(4)]];",
    "constant\nbool\nx\n[[function_constant(5)]]\n;",
  ])
  func formsOfTheDeclaration(source: String) throws {
    let lowered = try Lowered(source)
    #expect(lowered.body.squeezed.has("x SM_SYMBOL(constant, 0) = {}"))
    #expect(lowered.tail.has("{\"x\", "))
    #expect(lowered.tail.has("sizeof(x), \"bool\""))
    #expect(!lowered.body.has("const "))
  }

  @Test func queries() throws {
    let body = try Lowered(
      """
      namespace n { constant int a [[function_constant(0)]]; }
      constant bool has = is_function_constant_defined(n::a);
      kernel void f(device bool *x) { x[0] = is_function_constant_defined(n::a); }
      """
    ).body.squeezed
    #expect(body.has("x[0] = (n::sm_defined_a != 0);"))
  }

  @Test func derivedConstants() throws {
    let lowered = try Lowered(
      """
      constant bool a [[function_constant(0)]];
      constant int plain = 3;
      constant float2 v = a // comment ; "
        ? float2(1, 2) : float2(3);
      constant int table[2] = {a, 5};
      constant int twice = 2 * int(a);
      kernel void f() {}
      """)
    #expect(lowered.body.has("constant int plain = 3;"))
    #expect(lowered.tail.has("v = (a ? sm_value ( ( float2 ( 1 , 2 ) ) ) : sm_value ( ( float2 ( 3 ) ) ));"))
    #expect(lowered.tail.has("int values[ 2 ] = { a , 5 };"))
    #expect(lowered.tail.has("twice = (2 * int ( a ));"))
    #expect(lowered.body.split(separator: "\n", omittingEmptySubsequences: false).count == 7)
  }

  @Test func refusals() {
    #expect(Lowered.log("constant int a [[function_constant(0)]] = 3;").has("cannot have an initializer"))
    #expect(Lowered.log("int a [[function_constant(0)]];").has("test.metal:1:5: error: 'a' needs the 'constant'"))
  }

  @Test func kernelsThatAskNeedNoValue() throws {
    let lowered = try Lowered(
      """
      constant int a [[function_constant(0)]];
      constant bool b = is_function_constant_defined(a);
      kernel void asks(device int *x) { x[0] = b ? a : 0; }
      kernel void uses(device int *x) { x[0] = a; }
      """)
    #expect(!lowered.tail.has("sm_constants_0"))
    #expect(lowered.tail.has("sm_constants_1[] = {0}"))
  }
}
