/// The language of clang's that a source becomes.
enum Dialect: String, Hashable, Sendable {
  /// C++17. What it lacks of Metal, the steps of lowering rewrite, by what tokens tell of types.
  case cxx = "c++"
  /// C++ for OpenCL, which has Metal's address spaces. What it lacks has a fixed grammar.
  case openCL = "opencl"
}
