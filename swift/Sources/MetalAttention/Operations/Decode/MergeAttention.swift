import CMetalAttention

/// `ma_merge_attention`: joins results of attention over parts of the keys.
enum MergeAttention {
  static let family = KernelFamily(
    sources: [("merge_attention.metal", table.names)],
    dtypes: [.f32, .f16, .bf16])

  private static let table = KernelTable(1) { _ in "merge_attention" }
  private static let kernel = table.indices[0]
  private static let partNames: [(out: TensorName, lse: TensorName)] = [
    (.out0, .lse0), (.out1, .lse1), (.out2, .lse2), (.out3, .lse3), (.out4, .lse4), (.out5, .lse5), (.out6, .lse6),
    (.out7, .lse7),
  ]
  private static let threadsPerThreadgroup: UInt32 = 256

  static func encode(_ args: MAMergeAttentionArgs, into pass: Pass) throws(StatusError) -> PipelineSlot? {
    var params = args.params
    let parts = try parts(args, in: pass)
    let out = try Tensor(args.out, .out, in: pass)
    let lse = try Tensor.isPresent(args.lse) ? Tensor(args.lse, .lse, in: pass) : nil
    try check(out, lse, parts, params)
    params.n_parts = try Derived.fill(params.n_parts, "n_parts", UInt32(parts.count), "the number of parts")
    params.part_dtype = try Derived.fill(
      params.part_dtype, "part_dtype", parts[0].out.dtype.rawValue, "the dtype of the parts")
    params.out_dtype = try Derived.fill(params.out_dtype, "out_dtype", out.dtype.rawValue, "the dtype of out")
    params.has_lse = try Derived.fill(params.has_lse, "has_lse", lse == nil ? 0 : 1, "1 with lse and 0 without")

    guard let kernel else { throw StatusError(StatusCode.unsupported, "the library has no kernel that merges") }
    let slot = PipelineSlot(kernel: kernel, variant: 0)
    guard let pipeline = pass.device.registry.pipeline(slot) else { return slot }
    let encoder = pass.use(pipeline)
    for index in partNames.indices {
      // A kernel's buffers are bound whether it reads them or not.
      let part = index < parts.count ? parts[index] : parts[0]
      encoder.bind(part.out.buffer, offset: part.out.offset, at: 2 * index)
      encoder.bind(part.lse.buffer, offset: part.lse.offset, at: 2 * index + 1)
    }
    encoder.bind(params, at: 16)
    encoder.bind(out.buffer, offset: out.offset, at: 17)
    encoder.bind((lse ?? out).buffer, offset: lse?.offset ?? 0, at: 18)
    for part in parts {
      encoder.note(part.out.whole(isWrite: false))
      encoder.note(part.lse.whole(isWrite: false))
    }
    encoder.note(out.whole(isWrite: true))
    if let lse { encoder.note(lse.whole(isWrite: true)) }
    let grid = GridSize(params.row_size, params.rows, 1)
    let threads = grid.threadgroup(atMost: min(threadsPerThreadgroup, pipeline.maxTotalThreadsPerThreadgroup))
    encoder.dispatch(.mergeAttention, .threads, grid: grid, threads: threads)
    return nil
  }

  private typealias Part = (out: Tensor, lse: Tensor)

  private static func parts(_ args: MAMergeAttentionArgs, in pass: Pass) throws(StatusError) -> [Part] {
    let given = [
      (args.out0, args.lse0), (args.out1, args.lse1), (args.out2, args.lse2), (args.out3, args.lse3),
      (args.out4, args.lse4), (args.out5, args.lse5), (args.out6, args.lse6), (args.out7, args.lse7),
    ]
    var parts: [Part] = []
    for (names, tensors) in zip(partNames, given) {
      if !Tensor.isPresent(tensors.0) && !Tensor.isPresent(tensors.1) && !parts.isEmpty { break }
      parts.append((try Tensor(tensors.0, names.out, in: pass), try Tensor(tensors.1, names.lse, in: pass)))
    }
    for (names, tensors) in zip(partNames, given).dropFirst(parts.count) {
      try require(
        !Tensor.isPresent(tensors.0) && !Tensor.isPresent(tensors.1), StatusCode.invalidArgument,
        "\(names.out) is given behind a part that is absent; give the first ones")
    }
    return parts
  }

  private static func check(
    _ out: Tensor, _ lse: Tensor?, _ parts: [Part], _ params: MergeAttentionParams
  ) throws(StatusError) {
    try require(params.rows > 0, StatusCode.invalidArgument, "\(arg: "rows") is 0; it is at least 1")
    try require(params.row_size > 0, StatusCode.invalidArgument, "\(arg: "row_size") is 0; it is at least 1")
    let values = Count(params.rows) * params.row_size
    func formula() -> Sentence { "\(arg: "rows") \(params.rows) x \(arg: "row_size") \(params.row_size)" }
    for part in parts {
      try require(
        family.dtypes.contains(part.out.dtype), StatusCode.unsupported,
        "\(part.out.name) is \(part.out.dtype); it is \(family.dtypeList)")
      try require(
        part.out.dtype == parts[0].out.dtype, StatusCode.unsupported,
        "\(part.out.name) is \(part.out.dtype), \(parts[0].out.name) is \(parts[0].out.dtype); all parts have one dtype"
      )
      try part.lse.requireDType(.f32)
      try part.out.requireRoom(for: values, formula())
      try part.lse.requireRoom(for: Count(params.rows), "\(arg: "rows") \(params.rows)")
    }
    try require(
      family.dtypes.contains(out.dtype), StatusCode.unsupported,
      "\(out.name) is \(out.dtype); it is \(family.dtypeList)")
    try lse?.requireDType(.f32)
    try out.requireRoom(for: values, formula())
    try lse?.requireRoom(for: Count(params.rows), "\(arg: "rows") \(params.rows)")
    for part in parts {
      for written in [out, lse].compactMap({ $0 }) {
        for read in [part.out, part.lse] {
          try written.whole(isWrite: true).requireApart(written.name, from: read.whole(isWrite: false), read.name)
        }
      }
    }
    if let lse { try lse.whole(isWrite: true).requireApart(.lse, from: out.whole(isWrite: true), .out) }
  }
}
