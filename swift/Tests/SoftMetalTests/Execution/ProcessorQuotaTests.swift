import Glibc
import Testing

@testable import SoftMetal

// Glibc declares them only for GNU sources, which Swift's module of it does not ask for.
@_silgen_name("sched_getaffinity")
private func getAffinity(_ process: Int32, _ size: Int, _ set: UnsafeMutableRawPointer) -> Int32
@_silgen_name("sched_setaffinity")
private func setAffinity(_ process: Int32, _ size: Int, _ set: UnsafeRawPointer) -> Int32

@Suite struct ProcessorQuotaTests {
  /// The quota that a process finds in a root folder with these files.
  private func processors(_ files: [String: String]) throws -> Int? {
    var template = Array("/tmp/softmetal-quota-XXXXXX".utf8CString)
    let root = try #require(mkdtemp(&template).map { String(cString: $0) })
    var made = [root]
    defer { for path in made.reversed() { remove(path) } }
    for (path, text) in files.sorted(by: { $0.key < $1.key }) {
      let names = path.split(separator: "/")
      for depth in 1..<names.count {
        let folder = root + "/" + names.prefix(depth).joined(separator: "/")
        if mkdir(folder, 0o700) == 0 { made.append(folder) }
      }
      let file = try #require(fopen("\(root)/\(path)", "w"))
      fputs(text, file)
      fclose(file)
      made.append("\(root)/\(path)")
    }
    return ProcessorQuota(root: root).processors
  }

  private let version2 = "30 20 0:25 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
  private let version1 = "33 24 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"

  @Test(
    arguments: [
      ("max 100000", nil), ("100000 100000", 1), ("100001 100000", 2), ("150000 100000", 2), ("5000 100000", 1),
      ("400000 100000", 4), ("25000 10000", 3), ("", nil), ("100000", nil), ("0 100000", nil), ("many few", nil),
    ] as [(String, Int?)])
  func version2OfItsOwnGroup(text: String, expected: Int?) throws {
    let found = try processors([
      "proc/self/cgroup": "0::/app\n", "proc/self/mountinfo": version2, "sys/fs/cgroup/app/cpu.max": text + "\n",
    ])
    #expect(found == expected)
  }

  @Test(
    arguments: [
      ("-1", "100000", nil), ("200000", "100000", 2), ("110000", "50000", 3), ("1000", "100000", 1),
      ("200000", "0", nil),
    ] as [(String, String, Int?)])
  func version1OfItsOwnGroup(quota: String, period: String, expected: Int?) throws {
    let found = try processors([
      "proc/self/cgroup": "9:memory:/m\n4:cpu,cpuacct:/app\n1:name=systemd:/app\n", "proc/self/mountinfo": version1,
      "sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us": quota + "\n",
      "sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us": period + "\n",
    ])
    #expect(found == expected)
  }

  @Test func theLeastOfAllGroupsAboveCounts() throws {
    let files = [
      "proc/self/cgroup": "0::/slice/unit/app\n", "proc/self/mountinfo": version2,
      "sys/fs/cgroup/slice/cpu.max": "300000 100000\n", "sys/fs/cgroup/slice/unit/cpu.max": "800000 100000\n",
      "sys/fs/cgroup/slice/unit/app/cpu.max": "max 100000\n", "sys/fs/cgroup/slice/unit/other/cpu.max": "1 100000\n",
    ]
    #expect(try processors(files) == 3)
  }

  @Test func bothVersionsAtOnce() throws {
    let files = [
      "proc/self/cgroup": "4:cpu:/app\n0::/app\n",
      "proc/self/mountinfo": """
      31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
      32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw

      """,
      "sys/fs/cgroup/cpu/app/cpu.cfs_quota_us": "250000\n", "sys/fs/cgroup/cpu/app/cpu.cfs_period_us": "100000\n",
      "sys/fs/cgroup/unified/app/cgroup.procs": "1\n",
    ]
    #expect(try processors(files) == 3)
  }

  /// A container's mount shows its own group as the root, whatever the path outside is.
  @Test(arguments: ["/docker/4f2a/app", "/docker/4f2a", "/", "/../other", "/docker/0000"])
  func aContainerSeesItsOwnGroup(path: String) throws {
    let files = [
      "proc/self/cgroup": "4:cpu,cpuacct:\(path)\n",
      "proc/self/mountinfo": "33 24 0:29 /docker/4f2a /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
      "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "500000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    ]
    #expect(try processors(files) == 5)
  }

  @Test func withoutControlGroupsThereIsNoLimit() throws {
    #expect(try processors(["proc/self/status": "Name:\tapp\n"]) == nil)
    #expect(try processors(["proc/self/cgroup": "0::/app\n", "proc/self/mountinfo": version2]) == nil)
    #expect(try processors(["proc/self/cgroup": "strange\n", "proc/self/mountinfo": "- - -\n1 2 3\n"]) == nil)
  }

  /// A thread's own mask, so that the other tests keep theirs.
  @Test func theAffinityMaskCounts() {
    let thread = TestThread {
      var set = cpu_set_t()
      #expect(getAffinity(0, MemoryLayout<cpu_set_t>.size, &set) >= 0)
      let first = withUnsafeBytes(of: set) { (bytes: UnsafeRawBufferPointer) -> Int in
        for index in 0..<(bytes.count * 8) {
          let bit: UInt8 = 1 << UInt8(index % 8)
          if bytes[index / 8] & bit != 0 { return index }
        }
        return 0
      }
      var one = cpu_set_t()
      withUnsafeMutableBytes(of: &one) { (bytes: UnsafeMutableRawBufferPointer) in
        let bit: UInt8 = 1 << UInt8(first % 8)
        bytes[first / 8] = bit
      }
      #expect(setAffinity(0, MemoryLayout<cpu_set_t>.size, &one) == 0)
      #expect(Processor.usableCount == 1)
      #expect(DeviceSettings().threads == 1)
    }
    thread.join()
    #expect(DeviceSettings().threads == Processor.usableCount)
  }
}
