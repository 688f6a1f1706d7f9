import Synchronization

/// The time, which is all that this device counts.
final class SoftTimestamp: MTLCounter, MTLCounterSet {
  let name = MTLCommonCounterSet.timestamp.rawValue
  var counters: [any MTLCounter] { [self] }
}

/// Timestamps in nanoseconds of the clock of command buffers.
final class SoftCounterSampleBuffer: MTLCounterSampleBuffer {
  /// As many as an Apple GPU allows.
  private static let maxSamples = 4096

  let label: String
  let sampleCount: Int
  /// Whether its device samples between dispatches too.
  let isOfDispatches: Bool
  /// Written by the queue's thread, read once its command buffer has ended.
  private let samples: UnsafeMutableBufferPointer<UInt64>

  init(_ descriptor: MTLCounterSampleBufferDescriptor, isOfDispatches: Bool) throws {
    guard descriptor.counterSet is SoftTimestamp else {
      throw MTLLibraryError(.unsupported, "makeCounterSampleBuffer: the counter set is not this device's")
    }
    guard 1...Self.maxSamples ~= descriptor.sampleCount else {
      throw MTLLibraryError(
        .unsupported,
        "makeCounterSampleBuffer: sampleCount is \(descriptor.sampleCount); expected 1 to \(Self.maxSamples)")
    }
    self.isOfDispatches = isOfDispatches
    label = descriptor.label
    sampleCount = descriptor.sampleCount
    samples = .allocate(capacity: sampleCount)
    samples.initialize(repeating: 0)
  }

  deinit {
    samples.deallocate()
  }

  func resolveCounterRange(_ range: Range<Int>) throws -> Data? {
    guard range.lowerBound >= 0, range.upperBound <= sampleCount else { return nil }
    return Data(UnsafeRawBufferPointer(UnsafeMutableBufferPointer(rebasing: samples[range])))
  }

  /// - Parameter time: seconds.
  func write(_ time: Double, at index: Int) {
    samples[index] = UInt64(time * 1e9)
  }
}

/// The timestamps of an encoder.
struct EncoderSamples {
  let buffer: SoftCounterSampleBuffer
  let start: Int
  let end: Int
}

/// A timestamp to be written before a command runs.
struct SampleCommand {
  let command: Int
  let buffer: SoftCounterSampleBuffer
  let index: Int
}
