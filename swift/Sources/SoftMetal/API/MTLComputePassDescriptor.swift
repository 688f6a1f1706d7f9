/// How a compute encoder is made.
open class MTLComputePassDescriptor {
  public init() {}

  open var dispatchType = MTLDispatchType.serial
  open var sampleBufferAttachments: MTLComputePassSampleBufferAttachmentDescriptorArray { attachments }

  private let attachments = MTLComputePassSampleBufferAttachmentDescriptorArray()
}

/// Sample buffers that an encoder writes at its start and its end.
open class MTLComputePassSampleBufferAttachmentDescriptorArray {
  public init() {}

  private var first: MTLComputePassSampleBufferAttachmentDescriptor? = MTLComputePassSampleBufferAttachmentDescriptor()

  /// There is one, of index 0.
  open subscript(attachmentIndex: Int) -> MTLComputePassSampleBufferAttachmentDescriptor! {
    get { attachmentIndex == 0 ? first : nil }
    set { if attachmentIndex == 0 { first = newValue } }
  }
}

/// Which samples of a buffer an encoder writes.
open class MTLComputePassSampleBufferAttachmentDescriptor {
  public init() {}

  open var sampleBuffer: (any MTLCounterSampleBuffer)?
  open var startOfEncoderSampleIndex = 0
  open var endOfEncoderSampleIndex = 0
}
