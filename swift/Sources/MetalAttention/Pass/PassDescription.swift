extension Pass {
  /// What the pass holds, as the JSON that `ma_pass_describe` documents.
  var json: String {
    var start = 0
    let (accesses, times) = (accesses, times)
    return JSON.array(
      records.enumerated().map { number, record in
        defer { start = record.accessEnd }
        return record.json(
          accesses[start..<record.accessEnd], number < times.count ? times[number] : nil, profile?.samplingPoint)
      })
  }
}

extension DispatchRecord {
  fileprivate func json(
    _ accesses: ContiguousArray<Access>.SubSequence, _ time: (start: Double, end: Double)?,
    _ samplingPoint: PassProfile.SamplingPoint?
  ) -> String {
    var times: [(name: String, value: String)] = []
    if let time, let samplingPoint {
      times = [
        ("startTime", "\(time.start)"), ("endTime", "\(time.end)"), ("sampledAt", JSON.string("\(samplingPoint)")),
      ]
    }
    let members: [(name: String, value: String)] = [
      ("op", JSON.string("\(operation)")),
      ("kernel", JSON.string(pipeline.takeUnretainedValue().kernel)),
      ("executor", JSON.string(executor(of: pipeline.takeUnretainedValue().state))),
      ("form", JSON.string("\(form)")),
      ("grid", grid.json),
      ("threadsPerThreadgroup", threadsPerThreadgroup.json),
      ("reads", JSON.array(accesses.filter { !$0.isWrite }.map(\.json))),
      ("writes", JSON.array(accesses.filter(\.isWrite).map(\.json))),
      ("barrierBefore", "\(needsBarrier)"),
    ]
    return JSON.object(members + times)
  }
}

extension GridSize {
  fileprivate var json: String { JSON.array(["\(x)", "\(y)", "\(z)"]) }
}

extension Access {
  fileprivate var json: String {
    JSON.object([("buffer", "\(buffer)"), ("offset", "\(start)"), ("length", "\(end - start)")])
  }
}
