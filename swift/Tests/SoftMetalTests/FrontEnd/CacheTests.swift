import Glibc
import Synchronization
import Testing

@testable import SoftMetal

@Suite struct CacheTests {
  let folder: ShaderFolder

  init() throws {
    folder = try ShaderFolder()
  }

  func object() throws -> String {
    try folder.settings.cachePath + "/objects/" + #require(folder.objects.first)
  }

  @Test func secondTimeComesFromTheCache() throws {
    let first = try folder.compile(smallSource(1))
    let second = try folder.compile(smallSource(1))
    #expect(!first.wasCached && second.wasCached)
    #expect(first.object == second.object)
    #expect(first.functionNames == second.functionNames)
    // Another label or text is another source.
    #expect(try !folder.compile(smallSource(1), label: "other.metal").wasCached)
    #expect(try !folder.compile(smallSource(2)).wasCached)
    // Another build of the library lowers again, and finds the object.
    ShaderFolder.remove(folder.settings.cachePath + "/sources")
    mkdir(folder.settings.cachePath + "/sources", 0o700)
    #expect(try folder.compile(smallSource(1)).wasCached)
  }

  @Test func aCacheServesWhereItIsMovedTo() throws {
    _ = try folder.compile(smallSource(1))
    let moved = folder.path + "/moved"
    #expect(rename(folder.settings.cachePath, moved) == 0)
    folder.settings.cachePath = moved
    #expect(try folder.compile(smallSource(1)).wasCached)
    #expect(try !folder.compile(smallSource(2)).wasCached)
  }

  /// The folder of the cache whose name begins so.
  private func subfolder(_ prefix: String) throws -> String {
    let cache = folder.settings.cachePath
    return try cache + "/" + #require(Files.names(in: cache).first { $0.hasPrefix(prefix) })
  }

  enum Damage: CaseIterable {
    case removed, empty, half, zeros

    func done(to path: String) throws {
      let bytes = try #require(Files.read(path))
      switch self {
      case .removed: #expect(unlink(path) == 0)
      case .empty: #expect(Files.write([], to: path))
      case .half: #expect(Files.write(Array(bytes.prefix(bytes.count / 2)), to: path))
      case .zeros: #expect(Files.write(Array(repeating: 0, count: bytes.count), to: path))
      }
    }
  }

  @Test(arguments: ["headers-", "stubs-"], Damage.allCases)
  func damagedFilesOfTheLanguageAreMadeAgain(in kind: String, _ damage: Damage) throws {
    // The stubs are for sources with conditional lines, which the process has not seen.
    func newSource() -> String { "#if 1\n#endif\n" + smallSource(Int.random(in: 0..<1 << 30)) }
    let first = try folder.compile(newSource())
    let path = try subfolder(kind)
    func contents() -> [String: [UInt8]] {
      let files = Files.names(in: path).filter { !$0.hasSuffix(".pch") && !$0.hasSuffix(".sum") }
      return Dictionary(uniqueKeysWithValues: files.map { ($0, Files.read("\(path)/\($0)") ?? []) })
    }
    let before = contents()
    #expect(unlink(path + "/simd") == 0)
    for name in Files.names(in: path) { try damage.done(to: "\(path)/\(name)") }
    let second = try folder.compile(newSource())
    #expect(!second.wasCached && second.log.isEmpty)
    #expect(second.whyThreads == first.whyThreads)
    #expect(contents() == before)
    #expect(Files.names(in: folder.settings.cachePath).allSatisfy { !$0.hasPrefix("work-") })
  }

  @Test(arguments: Damage.allCases) func oneHeaderThatIsMadeAgainLeavesTheParsedOnes(_ damage: Damage) throws {
    _ = try folder.compile(smallSource(1))
    let headers = try subfolder("headers-")
    let parsed = try headers + "/" + #require(Files.names(in: headers).first { $0.hasSuffix(".pch") })
    let before = Files.identity(parsed)
    let header = headers + "/softmetal_traits"
    let bytes = Files.read(header)
    try damage.done(to: header)
    #expect(try folder.compile(smallSource(2)).log.isEmpty)
    #expect(Files.read(header) == bytes)
    #expect(Files.identity(parsed) == before)
  }

  /// Else a lesser executor would be tried, without what is damaged.
  @Test(arguments: [".pch", ".pch.sum"], Damage.allCases)
  func damagedParsedHeadersAreMadeAgain(_ ending: String, _ damage: Damage) throws {
    let first = try folder.compile(smallSource(1))
    let headers = try subfolder("headers-")
    let parsed = Files.names(in: headers).filter { $0.hasSuffix(".pch") }
    #expect(parsed.count == 1)
    let path = try headers + "/" + #require(parsed.first)
    let size = Files.read(path)?.count
    let sum = Files.read(path + ".sum")
    try damage.done(to: path.replacing(".pch", with: ending))
    let next = try folder.compile(smallSource(2))
    #expect(next.whyThreads == first.whyThreads)
    #expect(Files.names(in: headers).filter { $0.hasSuffix(".pch") } == parsed)
    #expect(Files.read(path)?.count == size && Files.read(path)?.first != 0)
    #expect(Files.read(path + ".sum")?.count == sum?.count && Files.read(path + ".sum")?.first != 0)
  }

  /// For a GPU's code, and for the object that has it.
  @Test func headersAreParsedAheadForAGPUToo() throws {
    let library = try folder.compile(smallSource(1))
    _ = try ShaderCompiler.compile(
      source: smallSource(1), kernel: library.functionNames.first, for: .nvptx, settings: folder.settings,
      precompiled: nil)
    let parsed = try Files.names(in: subfolder("headers-")).filter { $0.hasSuffix(".pch") }
    #expect(parsed.count == 3)
  }

  @Test func theFolderIsPrivate() throws {
    _ = try folder.compile(smallSource(1))
    var status = stat()
    #expect(stat(folder.settings.cachePath, &status) == 0)
    #expect(status.st_mode & 0o777 == 0o700)
    #expect(stat(try object(), &status) == 0)
    #expect(status.st_mode & 0o077 == 0)
    let left = Files.names(in: folder.settings.cachePath).filter { $0.hasPrefix("work-") }
    #expect(left.isEmpty)
    #expect(Files.names(in: folder.settings.cachePath + "/locks").isEmpty)
  }

  @Test func aFolderThatOthersReadStaysSo() throws {
    mkdir(folder.settings.cachePath, 0o755)
    _ = try folder.compile(smallSource(1))
    var status = stat()
    #expect(stat(folder.settings.cachePath, &status) == 0)
    #expect(status.st_mode & 0o777 == 0o755)
    for name in Files.names(in: folder.settings.cachePath) {
      #expect(stat(folder.settings.cachePath + "/" + name, &status) == 0)
      #expect(status.st_mode & 0o077 == 0, "\(name)")
    }
    #expect(folder.objects.count == 1)
  }

  @Test func aFolderThatOthersWriteIsNotUsed() throws {
    mkdir(folder.settings.cachePath, 0o700)
    chmod(folder.settings.cachePath, 0o777)
    #expect(try !folder.compile(smallSource(1)).wasCached)
    #expect(try !folder.compile(smallSource(1)).wasCached)
    #expect(Files.names(in: folder.settings.cachePath).isEmpty)
  }

  @Test func damagedEntriesAreRebuilt() throws {
    let good = try folder.compile(smallSource(1))
    let path = try object()
    let bytes = try #require(Files.read(path))
    var damaged: [[UInt8]] = [[], Array(bytes[..<20]), Array(bytes[..<(bytes.count - 1)]), bytes + [0]]
    for offset in [0, 8, 16, 24, 39, 40, bytes.count / 2, bytes.count - 1] {
      var copy = bytes
      copy[offset] ^= 0x10
      damaged.append(copy)
    }
    for content in damaged {
      #expect(Files.write(content, to: path))
      let again = try folder.compile(smallSource(1))
      #expect(!again.wasCached)
      #expect(again.object == good.object)
      #expect(try folder.compile(smallSource(1)).wasCached)
    }
  }

  @Test func theOldestGoFirst() throws {
    _ = try folder.compile(smallSource(1))
    let size = try #require(Files.read(try object())).count
    folder.settings.cacheLimit = 2 * size + size / 2
    let first = try #require(folder.objects.first)
    _ = try folder.compile(smallSource(2))
    #expect(try folder.compile(smallSource(1)).wasCached)
    usleep(20_000)
    #expect(try folder.compile(smallSource(1)).wasCached)
    _ = try folder.compile(smallSource(3))
    #expect(folder.objects.count == 2)
    #expect(folder.objects.contains(first))
    #expect(Files.names(in: folder.settings.cachePath + "/sources").count == 2)
    #expect(try !folder.compile(smallSource(2)).wasCached)
  }

  @Test func whatNobodyUsedForADayGoes() throws {
    _ = try folder.compile(smallSource(1))
    let names = ["headers-old", "stubs-old", "work-killed", "work-running", "other"]
    for name in names {
      let path = folder.settings.cachePath + "/" + name
      mkdir(path, 0o700)
      #expect(Files.write([1], to: path + "/file"))
    }
    func age(_ path: String) {
      let then = timeval(tv_sec: time(nil) - 25 * 60 * 60, tv_usec: 0)
      var times = [then, then]
      #expect(utimes(path, &times) == 0)
    }
    for name in Files.names(in: folder.settings.cachePath) where name != "work-running" {
      age(folder.settings.cachePath + "/" + name)
    }
    _ = try folder.compile(smallSource(2))
    let left = Set(Files.names(in: folder.settings.cachePath))
    #expect(left.isSuperset(of: ["objects", "sources", "locks", "work-running", "other"]))
    #expect(left.isDisjoint(with: ["headers-old", "stubs-old", "work-killed"]))
    // The headers in use had the same age until they were used again.
    #expect(left.contains { $0.hasPrefix("headers-") })
    #expect(try folder.compile(smallSource(1)).wasCached)
  }

  @Test func anUnusableFolderIsNoFailure() throws {
    #expect(Files.write([], to: folder.path + "/file"))
    for path in ["/proc/nothing/cache", folder.path + "/file", folder.path + "/file/cache"] {
      folder.settings.cachePath = path
      let shader = try LoadedShader(try folder.compile(smallSource(5)), constants: [:])
      #expect(try shader.run("fill", count: 1) == [5])
    }
  }

  @Test func nowhereToWriteIsATypedError() {
    folder.settings.cachePath = "/proc/nothing/cache"
    folder.settings.temporaryFolders = ["/proc/elsewhere"]
    let error = compilerError { try folder.compile(smallSource(1)) }
    #expect(error?.kind == .hostFailure)
    #expect(error?.message.has("/proc/nothing/cache, /proc/elsewhere") == true)
  }

  @Test func manyThreadsCompileOnce() async throws {
    let settings = folder.settings
    let fresh = try await withThrowingTaskGroup(of: Bool.self) { group in
      for _ in 0..<4 {
        group.addTask {
          try ShaderCompiler.compile(source: smallSource(77), label: "test.metal", settings: settings).wasCached
        }
      }
      return try await group.filter { !$0 }.reduce(0) { count, _ in count + 1 }
    }
    #expect(fresh == 1)
    #expect(folder.objects.count == 1)
  }

  @Test func locksExcludeEachOther() async throws {
    let path = folder.path + "/lock"
    let lock = try #require(EntryLock(path))
    let released = Atomic<Bool>(false)
    let waiter = Task.detached {
      let second = EntryLock(path)
      let wasReleased = released.load(ordering: .acquiring)
      second?.release()
      return second != nil && wasReleased
    }
    usleep(50_000)
    released.store(true, ordering: .releasing)
    lock.release()
    #expect(await waiter.value)
    #expect(access(path, F_OK) != 0)
  }

  @Test func hashesDiffer() {
    func hash(_ parts: [[UInt8]]) -> String {
      var hash = Hash128()
      for part in parts { hash.combine(part) }
      return hash.name
    }
    var seen: Set<String> = []
    for length in 0..<64 {
      let zeros = [UInt8](repeating: 0, count: length)
      #expect(seen.insert(hash([zeros])).inserted)
      for bit in 0..<length * 8 {
        var bytes = zeros
        bytes[bit / 8] = 1 << (bit % 8)
        #expect(seen.insert(hash([bytes])).inserted)
      }
    }
    #expect(hash([[1], [2]]) != hash([[1, 2]]))
    #expect(hash([[1, 2]]) == hash([[1, 2]]))
    #expect(hash([[]]).utf8.count == 32)
  }
}
