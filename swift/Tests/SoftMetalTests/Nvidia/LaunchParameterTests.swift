import CSoftMetal
import Testing

@testable import SoftMetal

/// Where arguments by value come from.
@Suite struct LaunchParameterTests {
  private let parameter = LaunchParameter()
  private let value = ValueArgument(index: 3, offset: 464, length: 4)

  /// What the parameter has of an argument at `address`, and the addresses that were asked for.
  private func taken(at address: UInt, from uploads: [ByteArena.Upload]) throws -> (UInt32, [UInt]) {
    var dispatch = SmDispatch()
    dispatch.buffers.3 = UnsafeMutableRawPointer(bitPattern: address)
    parameter.memory.storeBytes(of: ~0, toByteOffset: value.offset, as: UInt32.self)
    var asked: [UInt] = []
    try parameter.take(value, of: dispatch, from: uploads) { target, address, length in
      #expect(length == 4)
      asked.append(address)
      target.storeBytes(of: 9, as: UInt32.self)
    }
    return (parameter.memory.load(fromByteOffset: value.offset, as: UInt32.self), asked)
  }

  @Test func bytesAreAtHandAndBuffersAreAskedFor() throws {
    let bytes: [UInt32] = [1, 2, 3, 4]
    try bytes.withUnsafeBytes { bytes in
      let source = try #require(bytes.baseAddress)
      let uploads = try [0x1000, 0x5000].map {
        ByteArena.Upload(source: source, target: try #require(UnsafeMutableRawPointer(bitPattern: $0)), length: 16)
      }
      for (address, expected, isAsked) in [
        (0x1000, 1, false), (0x1004, 2, false), (0x500c, 4, false), (0x1010, 9, true), (0x100e, 9, true),
        (0xffe, 9, true), (0x4fff, 9, true), (UInt.max - 1, 9, true),
      ] as [(UInt, UInt32, Bool)] {
        let (number, asked) = try taken(at: address, from: uploads)
        #expect(number == expected)
        #expect(asked == (isAsked ? [address] : []))
      }
    }
  }

  @Test func anAbsentOneIsZero() throws {
    let (number, asked) = try taken(at: 0, from: [])
    #expect(number == 0)
    #expect(asked == [])
  }
}
