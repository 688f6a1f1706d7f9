/// What to write in place of what C++ has and Metal has not: a note behind an error that is about such a difference.
struct MetalNotes {
  /// Each note is said once a log.
  private var said: Set<String> = []

  /// The note that belongs to an error, in the form of a diagnostic's message; nil where there is none, or it was said.
  mutating func next(for message: String) -> String? {
    let known = Self.notes.first { note in note.parts.allSatisfy { message.contains($0) } }?.note
    guard let note = known ?? (Self.hasTwoSpaces(message) ? Self.otherMemory : nil), said.insert(note).inserted else {
      return nil
    }
    return note
  }

  /// Whether a message is about types of pointers to different memory.
  private static func hasTwoSpaces(_ message: String) -> Bool {
    let words = Set(message.split { !$0.isLetter }.map(String.init))
    return message.hasPrefix("cannot initialize") && AddressSpace.all.filter { words.contains($0) }.count > 1
  }

  /// By parts of the errors' words; the first that fits.
  private static let notes: [(parts: [String], note: String)] = [
    (["long double"], noDouble),
    (["'double'"], noDouble),
    (["'__float128'"], noDouble),
    (
      ["virtual functions"],
      "calls are settled when a shader is compiled: let a template parameter, 'if constexpr' or a switch choose"
    ),
    (["exceptions are"], "a kernel reports a failure by writing a code into a buffer, which the caller looks at"),
    (["'new'"], noHeap),
    (["'delete'"], noHeap),
    (["'operator new'"], noHeap),
    (["'operator delete'"], noHeap),
    (["'goto'"], "loops, 'break', 'continue', 'return' and 'switch' are there"),
    (
      ["lambda expressions"],
      "a struct with 'operator()' takes its place: what a lambda captures is a member, set by the constructor"
    ),
    (
      ["recursion is not supported"],
      "a GPU's thread has no stack of calls: use a loop, with an array for what is still to do; a template may call an "
        + "instance of itself with other arguments"
    ),
    (
      ["function pointers"],
      "a function may be an argument of a template, 'template <float (*F)(float)>', or an object with 'operator()'"
    ),
    (["pointers to members"], "pass the member itself by reference, or its place by a template parameter"),
    (["'dynamic_cast'"], noTypesAtRunTime),
    (["'typeid'"], noTypesAtRunTime),
    (["'thread_local'"], "a variable inside a function belongs to its thread already"),
    (["'register'"], "the compiler chooses what lies in registers"),
    (["standard library"], "the functions and types of <metal_stdlib> are in namespace metal"),
    (
      ["file not found"],
      "a source includes headers of Metal, such as <metal_stdlib>, and other sources by the name they are registered by"
    ),
    (["inline assembly"], "the compiler makes code for a GPU that it learns of later only"),
    (["'__builtin_"], "builtins are the compiler's own: functions of <metal_stdlib> are in their place"),
    (
      ["explicit address space qualifier"],
      "every pointer and reference says what memory it leads to: device, constant, threadgroup or thread"
    ),
    (
      ["needs an address space"],
      "the arguments of a kernel lie in device, constant or threadgroup memory, as 'device float *x [[buffer(0)]]'"
    ),
    (["program scope variable"], constantsOnly),
    (["static variable"], constantsOnly),
    (["function scope variable cannot be declared in constant"], "declare it outside of functions"),
    (
      ["in the threadgroup address space is not inside a kernel"],
      "a kernel declares its threadgroup memory, and hands functions a pointer, 'threadgroup float *'"
    ),
    (
      ["in the threadgroup address space cannot have an initializer"],
      "all threads share it: one of them writes it, and 'threadgroup_barrier(mem_flags::mem_threadgroup)' comes behind"
    ),
    (
      ["variable length arrays"],
      "the length is a constant expression, as a template parameter is; threadgroup memory of a length that the "
        + "dispatch gives is an argument, 'threadgroup float *s [[threadgroup(0)]]'"
    ),
    (
      ["is not a constant expression"],
      "nothing runs before a kernel does: what computes the value has to be 'constexpr'"
    ),
    (["address space"], otherMemory),
    (["variadic functions"], "a template takes any number of arguments by a pack, 'template <typename... T>'"),
    (["cannot be called: it runs"], "put what both do into a function that is no kernel, and call that from each"),
    (["must return void"], "a kernel gives its results back in buffers"),
    (["default argument"], "every argument of a kernel is set by the caller, or absent by a function constant"),
    (
      ["no viable conversion from 'bool"],
      "a comparison of vectors gives a vector of bool, which 'select', 'any' and 'all' take"
    ),
    (["belongs to graphics"], "an image may be a buffer of its numbers, with its width as an argument"),
  ]

  private static let noDouble =
    "numbers are float, half or bfloat: a literal without a suffix is a float, '1.0h' a half, and '1.0bf' a bfloat"
  private static let noHeap =
    "memory comes from the caller, as buffers and threadgroup arguments, or is an array of a known length"
  private static let noTypesAtRunTime =
    "types are known only when a shader is compiled: 'is_same_v<T, U>' compares them"
  private static let otherMemory =
    "memory of one address space is no other's: copy values, or make the function a template"
  private static let constantsOnly =
    "a program has constants only, 'constant float x = 1;': what a kernel changes is in buffers or its own"
}
