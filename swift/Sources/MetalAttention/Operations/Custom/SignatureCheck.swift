/// Holds the bindings of a dispatch against the signature of its kernel, and
/// names the kernel's own arguments where they disagree.
enum SignatureCheck {
  /// Checks one binding: that the kernel has the argument, and what it may do with it.
  @inline(__always)
  static func requireFit(_ binding: KernelBinding, _ name: @autoclosure () -> Argument, of pipeline: Pipeline)
    throws(StatusError)
  {
    // The tables are read where they lie: a copy would count a reference.
    switch binding {
    case .buffer(_, let access, let index):
      let bit: UInt32 = 1 << UInt32(index)
      let limit = pipeline.signature.buffers.limits[index]
      guard pipeline.signature.buffers.present & bit != 0,
        access.isWrite || pipeline.signature.buffers.writable & bit == 0,
        access.end - access.start >= limit.minimumLength, access.start & (limit.alignment - 1) == 0
      else { throw refusal(of: access, index, name(), pipeline) }
    case .bytes(let bytes, let index):
      let bit: UInt32 = 1 << UInt32(index)
      guard pipeline.signature.buffers.present & bit != 0, pipeline.signature.buffers.writable & bit == 0,
        UInt64(bytes.count) >= pipeline.signature.buffers.limits[index].minimumLength
      else { throw refusal(of: bytes, index, name(), pipeline) }
    case .threadgroup(let length, let index):
      guard pipeline.signature.threadgroups.present >> UInt32(index) & 1 != 0,
        UInt64(length) >= pipeline.signature.threadgroups.limits[index].minimumLength
      else {
        throw tooSmall(UInt64(length), .threadgroup, index, name(), pipeline)
      }
    case .use: break
    }
  }

  /// Checks that every argument that the kernel uses is bound; the sets have a bit for each index that is.
  @inline(__always)
  static func requireComplete(
    buffers: UInt32, threadgroups: UInt32, of pipeline: Pipeline
  ) throws(StatusError) {
    if let missing = pipeline.signature.missing(buffers: buffers, threadgroups: threadgroups) {
      let remedy = missing.kind == .buffer ? "bind a buffer or bytes" : "set the length of its memory"
      throw StatusError(
        StatusCode.invalidArgument,
        "\(missing.placeInCall): argument \(missing.name) of kernel \(pipeline.kernel) is missing; \(remedy)")
    }
    if let name = pipeline.signature.unbindable {
      throw StatusError(
        StatusCode.unsupported,
        "\(arg: "pipeline"): argument \(name) of kernel \(pipeline.kernel) is neither a buffer nor threadgroup memory")
    }
  }

  // MARK: Refusals

  @inline(never)
  private static func refusal(
    of access: Access, _ index: Int, _ name: Argument, _ pipeline: Pipeline
  ) -> StatusError {
    guard let argument = pipeline.signature.argument(.buffer, index) else {
      return surplus(.buffer, index, name, pipeline)
    }
    let described = "argument \(argument.name) of kernel \(pipeline.kernel)"
    if argument.isWritable, !access.isWrite {
      return StatusError(
        StatusCode.invalidArgument,
        "\(name): its access is read, but \(described) is not const, so the kernel may write it; "
          + "declare it const there, or bind it for reading and writing")
    }
    guard access.start % argument.alignment == 0 else {
      return StatusError(
        StatusCode.invalidArgument,
        "\(name): begins at byte \(access.start) of its buffer; \(described) needs a multiple of "
          + "\(argument.alignment)")
    }
    return tooSmall(access.end - access.start, .buffer, index, name, pipeline)
  }

  @inline(never)
  private static func refusal(
    of bytes: UnsafeRawBufferPointer, _ index: Int, _ name: Argument, _ pipeline: Pipeline
  ) -> StatusError {
    guard let argument = pipeline.signature.argument(.buffer, index), argument.isWritable else {
      return tooSmall(UInt64(bytes.count), .buffer, index, name, pipeline)
    }
    return StatusError(
      StatusCode.invalidArgument,
      "\(name): argument \(argument.name) of kernel \(pipeline.kernel) is not const, so the kernel may "
        + "write it, and what it writes to a copy of bytes is lost; bind a buffer, or declare it const there")
  }

  @inline(never)
  private static func tooSmall(
    _ length: UInt64, _ kind: KernelArgument.Kind, _ index: Int, _ name: Argument, _ pipeline: Pipeline
  ) -> StatusError {
    guard let argument = pipeline.signature.argument(kind, index) else {
      return surplus(kind, index, name, pipeline)
    }
    return StatusError(
      StatusCode.bufferTooSmall,
      "\(name): has \(length) bytes; argument \(argument.name) of kernel \(pipeline.kernel) needs at least "
        + "\(argument.minimumLength)")
  }

  private static func surplus(
    _ kind: KernelArgument.Kind, _ index: Int, _ name: Argument, _ pipeline: Pipeline
  ) -> StatusError {
    StatusError(
      StatusCode.invalidArgument,
      "\(name): kernel \(pipeline.kernel) has no argument \(kind.rawValue)(\(index)); it has "
        + "\(pipeline.signature.list)")
  }
}
