import CSoftMetal

/// What a kernel did that the processor cannot do, in words.
struct KernelFault {
  private let fault: SmFault
  private let dispatch: SmDispatch

  init(_ fault: SmFault, _ dispatch: SmDispatch) {
    self.fault = fault
    self.dispatch = dispatch
  }

  /// - Parameter kernel: its name, with the place of its dispatch.
  func error(in kernel: String) -> MTLCommandBufferError {
    switch Int(fault.kind) {
    case Int(SM_FAULT_STACK):
      MTLCommandBufferError(
        .stackOverflow, "\(kernel): a thread ran out of stack; its private variables and arrays are too large")
    case Int(SM_FAULT_ARITHMETIC):
      MTLCommandBufferError(.internal, "\(kernel): an arithmetic operation has no result")
    case Int(SM_FAULT_INSTRUCTION):
      MTLCommandBufferError(
        .internal, "\(kernel) came to a place in its code that cannot be reached, after undefined behavior")
    default:
      MTLCommandBufferError(.pageFault, "\(kernel) \(access) \(place)")
    }
  }

  private var access: String {
    switch Int(fault.access) {
    case Int(SM_FAULT_READ): "read from"
    case Int(SM_FAULT_WRITE): "wrote to"
    case Int(SM_FAULT_EXECUTE): "jumped to"
    default: "touched"
    }
  }

  private var place: String {
    switch Int(fault.kind) {
    case Int(SM_FAULT_NO_ADDRESS):
      "an address that no memory can have, or that is not aligned as its type needs: a wrong pointer or index"
    case _ where fault.address < 65536:
      "address 0x\(hexadecimal): a null pointer, or an index from one"
    case Int(SM_FAULT_PROTECTED):
      "address 0x\(hexadecimal), which is protected: outside its buffers\(nearest)"
    default:
      "address 0x\(hexadecimal), where there is no memory: outside its buffers\(nearest)"
    }
  }

  private var hexadecimal: String { String(fault.address, radix: 16) }

  /// Bytes up to which a distance says something: 32-bit indices of the largest vectors reach 64 GiB.
  private static let reach = 64 << 30

  /// How far the address is from the nearest buffer's start; empty where none is near.
  private var nearest: String {
    let address = Int(truncatingIfNeeded: fault.address)
    let distances = withUnsafeBytes(of: dispatch.buffers) { bytes in
      bytes.bindMemory(to: Int.self).enumerated().compactMap { index, start in
        start == 0 ? nil : (index: index, distance: address &- start)
      }
    }
    guard let nearest = distances.min(by: { $0.distance.magnitude < $1.distance.magnitude }),
      nearest.distance.magnitude <= Self.reach
    else { return "" }
    let side = nearest.distance < 0 ? "before" : "behind"
    return ", \(nearest.distance.magnitude) bytes \(side) where buffer(\(nearest.index)) is bound"
  }
}
