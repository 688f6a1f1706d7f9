/// What is known of a kernel's arguments under its function constants.
open class MTLComputePipelineReflection {
  private let arguments: [any MTLBinding]

  init(bindings: [any MTLBinding]) {
    arguments = bindings
  }

  open var bindings: [any MTLBinding] { arguments }
}

public typealias MTLAutoreleasedComputePipelineReflection = MTLComputePipelineReflection
