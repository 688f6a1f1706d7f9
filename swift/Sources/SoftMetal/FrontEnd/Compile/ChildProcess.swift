import CSoftMetal
import Glibc

/// Runs a program without a shell.
enum ChildProcess {
  struct Outcome {
    /// Exit status; 128 and the signal's number when one ended the program, nil when unknown.
    let status: Int32?
    /// What it wrote to its standard output and error.
    let output: String
  }

  /// What a program may take, so that one which would never end does not take the host's time and memory with it.
  struct Limits {
    /// Processor time: far above what any kernel takes to compile.
    var seconds: UInt64 = 300
    /// Address space.
    var bytes: UInt64 = 16 << 30
  }

  /// Runs `executable` to its end, or to its limits.
  ///
  /// - Parameter temporaryFolder: its TMPDIR.
  /// - Returns: nil with `errno` set when it could not be started.
  static func run(
    _ executable: String, _ arguments: [String], temporaryFolder: String? = nil, limits: Limits = Limits()
  ) -> Outcome? {
    var ends: [Int32] = [-1, -1]
    guard sm_open_pipe(&ends) == 0 else { return nil }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2)

    // A thread of the host may hold signals back, and its program would.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigaddset(&signals, SIGXCPU)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var process = pid_t()
    let result = withCStrings([executable] + arguments) { arguments in
      withCStrings(environment(temporaryFolder)) { environment in
        posix_spawn(&process, executable, &actions, &attributes, arguments, environment)
      }
    }
    close(ends[1])
    defer { close(ends[0]) }
    guard result == 0 else {
      errno = result
      return nil
    }
    sm_limit_process(process, limits.seconds, limits.bytes)
    let output = Files.read(ends[0], expecting: 4096) ?? []
    return Outcome(status: wait(process), output: String(decoding: output, as: UTF8.self))
  }

  private static func wait(_ process: pid_t) -> Int32? {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 {
      // A host that ignores SIGCHLD leaves no status behind.
      if errno != EINTR { return nil }
    }
    return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + status & 0x7F
  }

  private static func environment(_ temporaryFolder: String?) -> [String] {
    var result: [String] = []
    var entry = environ
    while let text = entry.pointee {
      let variable = String(cString: text)
      if temporaryFolder == nil || !variable.hasPrefix("TMPDIR=") { result.append(variable) }
      entry += 1
    }
    if let temporaryFolder { result.append("TMPDIR=" + temporaryFolder) }
    return result
  }

  private static func withCStrings<Result>(
    _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    let pointers = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: strings.count + 1)
    for (index, string) in strings.enumerated() { pointers[index] = strdup(string) }
    pointers[strings.count] = nil
    defer {
      for index in strings.indices { free(pointers[index]) }
      pointers.deallocate()
    }
    return body(pointers)
  }
}
