import CMetalAttention
import Testing

@testable import MetalAttention

@Suite struct LayoutTests {
  @Test func theABIVersionIsTheHeaders() {
    #expect(ma_abi_version() == MA_ABI_VERSION)
  }

  @Test(arguments: LayoutTable.structs.map(\.name))
  func fieldsCoverTheStruct(name: String) throws {
    let layout = try LayoutTable.find(name)
    var end = 0
    for field in layout.fields {
      #expect(field.offset == end, "\(name).\(field.name)")
      #expect(field.size % field.count == 0)
      end = field.offset + field.size
    }
    #expect(end == layout.size)
  }

  @Test func attnParamsHasTheReferencesOffsets() throws {
    let layout = try LayoutTable.find("AttnParams")
    let strides = layout.fields.suffix(4).map { [$0.name, "\($0.offset)", "\($0.count)"] }
    #expect(layout.size == 160)
    #expect(strides.map { $0[0] } == ["Q_strides", "K_strides", "V_strides", "O_strides"])
    #expect(strides.map { $0[1] } == ["64", "88", "112", "136"])
    #expect(strides.allSatisfy { $0[2] == "3" })
  }

  @Test func theJSONHoldsEveryStruct() {
    let json = text(ma_layout_json)
    #expect(json.hasPrefix("{\"abiVersion\":\(MA_ABI_VERSION),\"structs\":[{\"name\":"))
    #expect(
      json.contains(
        "{\"name\":\"AttnMaskParams\",\"size\":24,\"alignment\":8,\"fields\":["
          + "{\"name\":\"M_strides\",\"offset\":0,\"size\":24,\"type\":\"i64\",\"count\":3}]}"))
    #expect(LayoutTable.structs.count == json.ranges(of: "\"alignment\":").count)
  }

  @Test func fieldsAreReadFromBytesOfAnyAlignment() {
    var args = MAFlashAttnPrefillArgs()
    args.out.offset = 0xFFFF_FFFF_FFFF_FFFE
    args.params.scale = 0.125
    args.params.O_strides.1 = -5
    args.causal = 1
    let size = MemoryLayout.size(ofValue: args)
    var bytes = [UInt8](repeating: 0, count: size + 1)
    withUnsafeBytes(of: args) { bytes.replaceSubrange(1..., with: $0) }
    func read(_ field: String, _ element: UInt32 = 0) -> (Int64, Double) {
      var (integer, real): (Int64, Double) = (99, 99)
      bytes.withUnsafeBytes {
        expectOK(
          ma_layout_read(
            "MAFlashAttnPrefillArgs", field, element, $0.baseAddress.map { $0 + 1 }, UInt64(size), &integer, &real))
      }
      return (integer, real)
    }
    #expect(read("out.offset") == (-2, 99))
    #expect(read("params.scale") == (99, 0.125))
    #expect(read("params.O_strides", 1) == (-5, 99))
    #expect(read("causal") == (1, 99))
  }

  @Test func whatHasNoLayoutIsRefused() {
    var (integer, real): (Int64, Double) = (0, 0)
    let bytes = [UInt8](repeating: 0, count: 160)
    func read(_ name: String, _ field: String, _ element: UInt32, _ length: UInt64) -> Int32 {
      ma_layout_read(name, field, element, bytes, length, &integer, &real)
    }
    expectRefused(read("Nothing", "B", 0, 160), MA_ERROR_INVALID_ARGUMENT, "Nothing", "AttnParams")
    expectRefused(read("AttnParams", "C", 0, 160), MA_ERROR_INVALID_ARGUMENT, "field is C", "qL_off")
    expectRefused(read("AttnParams", "B", 1, 160), MA_ERROR_INVALID_ARGUMENT, "element is 1")
    expectRefused(read("AttnParams", "B.x", 0, 160), MA_ERROR_INVALID_ARGUMENT, "not a struct")
    expectRefused(read("AttnParams", "B", 0, 159), MA_ERROR_BUFFER_TOO_SMALL, "159", "160")
  }
}
