@_exported import ObjectiveC

public typealias CFTimeInterval = Double
