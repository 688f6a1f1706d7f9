import CMetalAttention
import MetalAttention
import Testing

@Test func theABIVersionIsTheHeaders() {
  #expect(ma_abi_version() == MA_ABI_VERSION)
}
