/// One encoded dispatch.
struct DispatchCommand {
  /// Retained by the list that holds the command.
  let pipeline: Unmanaged<SoftComputePipelineState>
  /// Where its arguments begin in `CommandList.arguments`: an address for each
  /// of the pipeline's buffers, then a length for each threadgroup memory.
  let firstArgument: Int
  /// Nothing orders dispatches of the same stage.
  let stage: Int
  let grid: DispatchGrid
}
