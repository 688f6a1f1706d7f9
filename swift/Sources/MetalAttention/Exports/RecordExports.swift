import CMetalAttention

extension Exports {
  static func recordScalar(
    _ pass: UInt32, _ name: UnsafePointer<CChar>?, _ least: UInt32, _ most: UInt32,
    _ scalar: UnsafeMutablePointer<UInt32>?
  ) throws(StatusError) {
    let name = try read(name, "name")
    let out = try unwrap(scalar, "scalar")
    try require(
      least <= most, StatusCode.invalidArgument, "\(arg: "least") is \(least), above \(arg: "most"), which is \(most)")
    let number = try HandleSpace.lock.withLock { () throws(StatusError) in
      let recording = try HandleSpace.passes.resolveRecording(pass).recording
      try recording.requireNew(name)
      return recording.add(Recording.Scalar(name: name, range: least...most))
    }
    store(UInt32(clamping: number), to: out)
  }

  static func recordUse(
    _ pass: UInt32, _ scalar: UInt32, _ argument: UnsafePointer<CChar>?
  ) throws(StatusError) {
    if argument == nil {
      return try HandleSpace.lock.withLock { () throws(StatusError) in
        try HandleSpace.passes.resolveRecording(pass).recording.forgetUses()
      }
    }
    let name: String = try read(argument, "argument")
    try HandleSpace.lock.withLock { () throws(StatusError) in
      let recording = try HandleSpace.passes.resolveRecording(pass).recording
      try require(
        Int(scalar) < recording.scalars.count, StatusCode.invalidArgument,
        "\(arg: "scalar") is \(scalar); the pass has \(recording.scalars.count)")
      recording.use(Int(scalar), as: name)
    }
  }

  static func recordTensor(
    _ pass: UInt32, _ name: UnsafePointer<CChar>?, _ tensor: UnsafePointer<MATensor>?,
    _ number: UnsafeMutablePointer<UInt32>?
  ) throws(StatusError) {
    let name = try read(name, "name")
    let given = try read(tensor, "tensor")
    let out = try unwrap(number, "number")
    let position = try HandleSpace.lock.withLock { () throws(StatusError) in
      let (pass, recording) = try HandleSpace.passes.resolveRecording(pass)
      try recording.requireNew(name)
      let buffer = try HandleSpace.buffers.resolveUncounted(given.buffer, "tensor")
      try require(given.length > 0, StatusCode.invalidArgument, "\(arg: "tensor"): length is 0; it has at least 1 byte")
      _ = try buffer.requireRange(given.offset, given.length, of: pass.deviceIdentity, "tensor")
      return recording.add(Recording.Replaceable(name: name, tensor: given))
    }
    store(UInt32(clamping: position), to: out)
  }

  static func recordRun(
    _ pass: UInt32, _ run: UnsafePointer<MARun>?, _ started: UnsafeMutablePointer<UInt32>?
  ) throws(StatusError) {
    let run = try read(run, "run")
    let out = try unwrap(started, "started")
    try require(run.notify <= 1, StatusCode.invalidArgument, "\(arg: "notify") is \(run.notify); it is 0 or 1")
    let device = try HandleSpace.passes.open(pass, "pass").device
    store(try device.run(pass, run), to: out)
  }
}
