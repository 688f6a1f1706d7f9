/// The entry points of a family by its parameters, each given as a place in a
/// list of that parameter's values: the one rule from parameters to kernels.
struct KernelTable {
  private let shape: KernelTableShape
  /// Row-major; nil where no kernel serves the combination.
  private let cells: [String?]

  /// - Parameters:
  ///   - counts: values of each parameter, four parameters at most.
  ///   - name: the entry point for a place of each.
  init(_ counts: Int..., name: ([Int]) -> String?) {
    shape = KernelTableShape(counts)
    cells = shape.places.map(name)
  }

  /// Every entry point with its place of each parameter.
  var entries: [(place: [Int], name: String)] {
    zip(shape.places, cells).compactMap { place, name in name.map { (place, $0) } }
  }

  /// All entry points.
  var names: [String] { entries.map(\.name) }

  /// Those at one place of the first parameter.
  func names(at first: Int) -> [String] {
    entries.filter { $0.place[0] == first }.map(\.name)
  }

  /// The same cells as indices in `BuiltInKernel.all`; to be made after the families.
  var indices: KernelIndices {
    let known = Dictionary(uniqueKeysWithValues: BuiltInKernel.all.enumerated().map { ($1.name, Int32($0)) })
    return KernelIndices(shape: shape, cells: ConstantList(cells.map { $0.flatMap { known[$0] } ?? -1 }))
  }
}

/// The indices in `BuiltInKernel.all` of a family's entry points.
struct KernelIndices {
  fileprivate let shape: KernelTableShape
  fileprivate let cells: ConstantList<Int32>

  /// The index for a place of each parameter; nil where there is no kernel.
  @inline(__always)
  subscript(_ a: Int, _ b: Int = 0, _ c: Int = 0, _ d: Int = 0) -> Int? {
    let cell = cells[shape.cell(a, b, c, d)]
    return cell < 0 ? nil : Int(cell)
  }
}

/// How many values each of up to four parameters has.
private struct KernelTableShape {
  private let counts: (Int, Int, Int, Int)

  init(_ given: [Int]) {
    let padded = given + Array(repeating: 1, count: 4 - given.count)
    counts = (padded[0], padded[1], padded[2], padded[3])
  }

  @inline(__always)
  func cell(_ a: Int, _ b: Int, _ c: Int, _ d: Int) -> Int {
    ((a * counts.1 + b) * counts.2 + c) * counts.3 + d
  }

  /// Every combination of places, in the order of the cells.
  var places: [[Int]] {
    (0..<counts.0).flatMap { a in
      (0..<counts.1).flatMap { b in
        (0..<counts.2).flatMap { c in (0..<counts.3).map { d in [a, b, c, d] } }
      }
    }
  }
}
