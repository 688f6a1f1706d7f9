import Glibc

/// The share of processor time that control groups leave to this process: both versions, and every group from its own
/// up to the root.
struct ProcessorQuota {
  /// The number of processors that the share keeps busy, rounded up; nil for no limit.
  let processors: Int?

  /// - Parameter root: the folder in place of `/`.
  init(root: String = "") {
    let groups = Self.lines(of: root + "/proc/self/cgroup").compactMap(Group.init)
    let mounts = Self.lines(of: root + "/proc/self/mountinfo").compactMap(Mount.init)
    let limits = groups.flatMap { group in
      mounts.filter { $0.version == group.version }.flatMap { mount in
        mount.folders(of: group.path).compactMap { Self.limit(of: group.version, in: root + $0) }
      }
    }
    processors = limits.min().map { max(1, Int(min($0, Double(Int32.max)).rounded(.up))) }
  }

  private enum Version { case one, two }

  /// A line of `/proc/self/cgroup`, of a hierarchy that limits processor time: `NUMBER:CONTROLLERS:PATH`.
  private struct Group {
    let version: Version
    let path: String

    init?(_ line: String) {
      let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { return nil }
      if fields[0] == "0", fields[1].isEmpty {
        version = .two
      } else if fields[1].split(separator: ",").contains("cpu") {
        version = .one
      } else {
        return nil
      }
      path = String(fields[2])
    }
  }

  /// A line of `/proc/self/mountinfo`, of such a hierarchy: its fourth field is the group that is mounted, its fifth
  /// where; behind ` - ` come type, source and options.
  private struct Mount {
    let version: Version
    private let group: [Substring]
    private let folder: String

    init?(_ line: String) {
      let fields = line.split(separator: " ")
      guard let dash = fields.firstIndex(of: "-"), dash >= 6, fields.count >= dash + 4 else { return nil }
      switch fields[dash + 1] {
      case "cgroup2": version = .two
      case "cgroup" where fields[dash + 3].split(separator: ",").contains("cpu"): version = .one
      default: return nil
      }
      group = fields[3].split(separator: "/")
      folder = String(fields[4])
    }

    /// The folders of a group and of those above it, as far as they are mounted. One outside what is mounted, as a
    /// container sees it, has only those limits that the mounted group shows.
    func folders(of path: String) -> [String] {
      let names = path.split(separator: "/")
      let isInside = names.starts(with: group) && !names.contains("..")
      let below = isInside ? names.dropFirst(group.count) : []
      return (0...below.count).map { depth in
        ([folder] + below.prefix(depth).map(String.init)).joined(separator: "/")
      }
    }
  }

  /// Processors, of one group.
  private static func limit(of version: Version, in folder: String) -> Double? {
    let texts: [String] =
      switch version {
      case .two: lines(of: folder + "/cpu.max").first.map { $0.split(separator: " ").map(String.init) } ?? []
      case .one: ["quota", "period"].compactMap { lines(of: folder + "/cpu.cfs_\($0)_us").first }
      }
    // No quota is "max" or -1.
    guard texts.count == 2, let quota = Double(texts[0]), let period = Double(texts[1]), quota > 0, period > 0
    else { return nil }
    return quota / period
  }

  /// Empty where there is no such file.
  private static func lines(of path: String) -> [String] {
    guard let file = fopen(path, "r") else { return [] }
    defer { fclose(file) }
    var line: UnsafeMutablePointer<CChar>?
    var capacity = 0
    defer { free(line) }
    var lines: [String] = []
    while getline(&line, &capacity, file) >= 0, let line {
      lines.append(String(String(cString: line).prefix { $0 != "\n" }))
    }
    return lines
  }
}
