/// Seconds, as Core Foundation counts them.
public typealias CFTimeInterval = Double
