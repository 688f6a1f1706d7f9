import Glibc

/// The headers of the Metal Shading Language, embedded in the library.
enum HeaderFolder {
  /// Every header by its file name.
  static let headers: [(name: String, bytes: [UInt8])] = [
    ("metal_array", PackageResources.metal_array),
    ("metal_atomic", PackageResources.metal_atomic),
    ("metal_common", PackageResources.metal_common),
    ("metal_compute", PackageResources.metal_compute),
    ("metal_geometric", PackageResources.metal_geometric),
    ("metal_integer", PackageResources.metal_integer),
    ("metal_limits", PackageResources.metal_limits),
    ("metal_math", PackageResources.metal_math),
    ("metal_matrix", PackageResources.metal_matrix),
    ("metal_pack", PackageResources.metal_pack),
    ("metal_quadgroup", PackageResources.metal_quadgroup),
    ("metal_relational", PackageResources.metal_relational),
    ("metal_simdgroup", PackageResources.metal_simdgroup),
    ("metal_simdgroup_matrix", PackageResources.metal_simdgroup_matrix),
    ("metal_stdlib", PackageResources.metal_stdlib),
    ("metal_type_traits", PackageResources.metal_type_traits),
    ("metal_types", PackageResources.metal_types),
    ("metal_uniform", PackageResources.metal_uniform),
    ("simd.h", PackageResources.simd_h),
    ("softmetal.h", PackageResources.softmetal_h),
    ("softmetal_assignment", PackageResources.softmetal_assignment),
    ("softmetal_components", PackageResources.softmetal_components),
    ("softmetal_executor", PackageResources.softmetal_executor),
    ("softmetal_fibre_lanes", PackageResources.softmetal_fibre_lanes),
    ("softmetal_fibre_matrix", PackageResources.softmetal_fibre_matrix),
    ("softmetal_fibres", PackageResources.softmetal_fibres),
    ("softmetal_member", PackageResources.softmetal_member),
    ("softmetal_object", PackageResources.softmetal_object),
    ("softmetal_vector_lanes", PackageResources.softmetal_vector_lanes),
    ("softmetal_vector_matrix", PackageResources.softmetal_vector_matrix),
    ("softmetal_vectors", PackageResources.softmetal_vectors),
    ("softmetal_worker.h", PackageResources.softmetal_worker_h),
  ]

  /// Hash of all headers.
  static let hash: Hash128 = {
    var hash = Hash128()
    for header in headers {
      hash.combine(header.name)
      hash.combine(header.bytes)
    }
    return hash
  }()

  /// The headers as files in `parent`, written once for each content.
  /// Nil when they cannot be written.
  static func headers(in parent: String) -> String? {
    folder(parent + "/headers-" + hash.name, in: parent) { $0.bytes }
  }

  /// Stubs of the headers that users include, for the preprocessor.
  static func stubs(in parent: String) -> String? {
    folder(parent + "/stubs-" + hash.name, in: parent) { Array(Preprocessing.stub(forHeader: $0.name).utf8) }
  }

  private static func folder(
    _ path: String, in parent: String, content: ((name: String, bytes: [UInt8])) -> [UInt8]
  ) -> String? {
    // Its time says when it was last used.
    if utimensat(AT_FDCWD, path, nil, 0) == 0 { return path }
    guard let temporary = WorkFolder.make(in: parent) else { return nil }
    for header in headers where !Files.write(content(header), to: temporary + "/" + header.name) {
      Files.removeFolder(temporary)
      return nil
    }
    // `<simd/simd.h>` is in the same folder.
    symlink(".", temporary + "/simd")
    if rename(temporary, path) != 0 {
      // Another process was first.
      Files.removeFolder(temporary)
      guard access(path, F_OK) == 0 else { return nil }
    }
    return path
  }
}
