/// Code for NVIDIA GPUs: clang's target for PTX, with what C++ for OpenCL lays into other memory than Metal.
enum NvptxCode {
  /// The oldest GPUs with matrix products of bfloat, which the driver compiles PTX of 7.8 for from version 520 on.
  private static let target = [
    "--target=nvptx64-nvidia-cuda", "-march=sm_80", "--cuda-feature=+ptx78", "-nogpulib", "-O3",
  ]

  private static let extensions = [
    "cl_khr_fp16", "cl_khr_fp64", "__opencl_c_fp64", "__opencl_c_generic_address_space",
    "__opencl_c_program_scope_global_variables",
  ]

  /// Changes with any change of what is done here.
  static let identity = "9 " + (target + rawOutput + generationFlags + barrierFlags).joined(separator: " ")

  /// Whether SOFTMETAL_ALIGNED_BARRIERS asks for barriers whose lanes come together.
  static let alignsBarriers = Files.environment("SOFTMETAL_ALIGNED_BARRIERS") == "1"
  private static let barrierFlags = alignsBarriers ? ["-DSM_ALIGNED_BARRIERS"] : []

  /// From lowered source to LLVM's code, as clang's front end leaves it.
  static func flags(_ options: ShaderCompiler.Options) -> [String] {
    var flags = CompilerFlags.language + target + CompilerFlags.warnings
    flags += ["-Xclang", "-cl-ext=" + extensions.map { "+" + $0 }.joined(separator: ",")]
    flags += [
      "-nostdlibinc", "-fno-exceptions", "-fno-rtti", "-fno-math-errno", "-fno-threadsafe-statics",
      "-Wno-extern-initializer", "-DSM_EXECUTE_NVPTX",
    ]
    flags += barrierFlags
    flags += CompilerFlags.arithmetic(options)
    return flags + CompilerFlags.simdgroups(options) + CompilerFlags.defines(options)
  }
  static let rawOutput = ["-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes"]

  /// From LLVM's code to PTX.
  ///
  /// In the large model LLVM keeps tables of addresses: its tables of distances would begin with their own address, for
  /// which PTX has no form.
  static let generationFlags = target + ["-mcmodel=large", "-x", "ir", "-S"]

  // MARK: Memory

  /// LLVM's code with everything in the memory that it has on this device.
  ///
  /// What Metal calls `constant` is any memory that a kernel does not write, while clang takes the address space for the
  /// 64 KiB of the hardware's constant bank. Threadgroup variables are static members of templates, which C++ for OpenCL
  /// allows in global memory alone; those of the section `sm_shared` go to shared memory. Of both there are only
  /// addresses as integers, so nothing else changes its type.
  static func placed(_ code: [UInt8]) -> [UInt8] {
    var shared: Set<[UInt8]> = [argumentMemory]
    let given = code.split(separator: newline, omittingEmptySubsequences: false)
    let groups = Set(given.compactMap(inliningGroup))
    let lines = given.map { line -> [UInt8] in
      guard line.first == UInt8(ascii: "@"), let variable = SharedVariable(line) else {
        return spaced(inlined(line, groups))
      }
      shared.insert(variable.name)
      return variable.declaration
    }
    return Array(lines.map { readdressed($0, shared) }.joined(separator: [newline]))
  }

  private static let newline = UInt8(ascii: "\n")
  static let argumentMemory = Array("@sm_threadgroup_arguments".utf8)
  private static let globalPointer = Array("ptr addrspace(1) ".utf8)
  private static let sharedPointer = Array("ptr addrspace(3) ".utf8)

  /// The start of a definition that is always inlined as that of one which others have too: LLVM 19 has no code for what
  /// would stay of a function with a vector of bool. Local to the module it would lose what is said of a recursion.
  ///
  /// - Parameter groups: attributes with `alwaysinline`, such as `#1`.
  private static func inlined(_ line: ArraySlice<UInt8>, _ groups: Set<[UInt8]>) -> ArraySlice<UInt8> {
    guard let start = definitions.first(where: { line.starts(with: $0) }), let sign = line.lastIndex(of: groupSign),
      groups.contains(word(line, at: sign))
    else { return line }
    let rest = replacing(Array(" comdat ".utf8), in: Array(line.dropFirst(start.count))) { _ in [space] }
    return ArraySlice(Array("define available_externally ".utf8) + rest)
  }
  private static let definitions = ["", "linkonce_odr ", "weak_odr "].map { Array("define \($0)dso_local ".utf8) }
  private static let groupSign = UInt8(ascii: "#")
  private static let space = UInt8(ascii: " ")

  /// The name of a group of attributes with `alwaysinline`, where the line defines one.
  private static func inliningGroup(_ line: ArraySlice<UInt8>) -> [UInt8]? {
    guard line.starts(with: Array("attributes #".utf8)), line.contains(Array(" alwaysinline ".utf8)),
      let sign = line.firstIndex(of: groupSign)
    else { return nil }
    return word(line, at: sign)
  }

  private static func word(_ line: ArraySlice<UInt8>, at start: Int) -> [UInt8] {
    Array(line[start...].prefix { $0 != space })
  }

  private static func spaced(_ line: ArraySlice<UInt8>) -> [UInt8] {
    let line = replacing(Array("addrspace(4)".utf8), in: Array(line)) { _ in Array("addrspace(1)".utf8) }
    // Intrinsics are named for the memory that they take.
    return line.contains(UInt8(ascii: "@"))
      ? replacing(Array(".p4".utf8), in: line) { _ in Array(".p1".utf8) } : line
  }

  /// The line with the pointers to shared variables as such.
  private static func readdressed(_ line: [UInt8], _ shared: Set<[UInt8]>) -> [UInt8] {
    replacing(globalPointer, in: line) { rest in
      let name = Array(rest.prefix { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: ")") })
      return shared.contains(name) ? sharedPointer : globalPointer
    }
  }

  /// - Parameter replacement: of what comes behind a place.
  private static func replacing(
    _ text: [UInt8], in line: [UInt8], with replacement: (ArraySlice<UInt8>) -> [UInt8]
  ) -> [UInt8] {
    guard let first = text.first else { return line }
    var result: [UInt8] = []
    result.reserveCapacity(line.count)
    var position = 0
    while position < line.count {
      if line[position] == first, line[position...].starts(with: text) {
        position += text.count
        result += replacement(line[position...])
      } else {
        result.append(line[position])
        position += 1
      }
    }
    return result
  }

  // MARK: Checks

  /// - Throws: `ShaderCompilerError` that names the functions that PTX lacks, or the entry that a GPU could not begin.
  static func check(_ ptx: [UInt8], label: String) throws {
    let lines = String(decoding: ptx, as: UTF8.self).split(separator: "\n")
    if let function = lines.first(where: { $0.hasPrefix(".visible .func " + Tail.entryName) }) {
      throw ShaderCompilerError(kind: .hostFailure, message: "\(label): internal error: no entry: \(function)")
    }
    let missing = lines.filter { $0.hasPrefix(".extern .func") }.map(declaredName)
    guard !missing.isEmpty else { return }
    let errors = Set(missing).sorted().map {
      "\(label): error: undefined symbol '\($0)': it is declared and used, but never defined for an NVIDIA GPU\n"
    }
    throw ShaderCompilerError(
      kind: .compileFailure, message: errors.joined() + DiagnosticText.count(errors.count))
  }

  /// The name in `.extern .func (.param .b32 func_retval0) name`.
  private static func declaredName(_ line: Substring) -> String {
    line.split { " \t()".contains($0) }.last.map(String.init) ?? ""
  }
}
