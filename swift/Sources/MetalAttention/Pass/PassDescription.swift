extension Pass {
  /// What the pass holds, as the JSON that `ma_pass_describe` documents.
  var json: String {
    var start = 0
    return JSON.array(
      records.map { record in
        defer { start = record.accessEnd }
        return record.json(accesses[start..<record.accessEnd])
      })
  }
}

extension DispatchRecord {
  fileprivate func json(_ accesses: ContiguousArray<Access>.SubSequence) -> String {
    JSON.object([
      ("op", JSON.string("\(operation)")),
      ("kernel", JSON.string(pipeline.takeUnretainedValue().kernel)),
      ("executor", JSON.string(executor(of: pipeline.takeUnretainedValue().state))),
      ("form", JSON.string("\(form)")),
      ("grid", grid.json),
      ("threadsPerThreadgroup", threadsPerThreadgroup.json),
      ("reads", JSON.array(accesses.filter { !$0.isWrite }.map(\.json))),
      ("writes", JSON.array(accesses.filter(\.isWrite).map(\.json))),
      ("barrierBefore", "\(needsBarrier)"),
    ])
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
