import Testing

@testable import SoftMetal

/// Where kernels on newer GPUs wait for what is before them.
@Suite struct PtxOverlapTests {
  private func enabled(_ ptx: String) -> String? {
    let result = PtxOverlap.enabled(Array(ptx.utf8CString))
    return result.map { String(decoding: $0.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self) }
  }

  @Test func everyEntryWaits() {
    let entry = "{\n\t// begin inline asm\n\t// sm_wait_for_dispatches\n\t// end inline asm\n\tret;\n}\n"
    #expect(
      enabled(".version 7.8\n.target sm_80\n" + entry + entry)
        == ".version 7.8\n.target sm_90\n"
        + (entry + entry).replacing("// sm_wait_for_dispatches", with: "griddepcontrol.wait;"))
  }

  @Test(arguments: ["", ".target sm_80\n{ ret; }", "// sm_wait_for_dispatches"])
  func whatHasNoPlaceForItStays(ptx: String) {
    #expect(enabled(ptx) == nil)
  }

  /// Nothing that a dispatch before may have written is read, and no number told, ahead of the wait.
  @Test func theWaitIsBeforeAnyAccess() throws {
    let folder = try ShaderFolder()
    let source = "kernel void k(device uint *o [[buffer(0)]], uint i [[thread_position_in_grid]]) { o[i] = o[i + 1]; }"
    let compiled = try ShaderCompiler.compile(
      source: source, label: "k.metal", kernel: "k", for: .nvptx, settings: folder.settings, precompiled: nil)
    let shader = try LoadedShader(compiled, constants: [:])
    let made = try #require(shader.ptx)
    let ptx = try #require(enabled(String(cString: made)))
    let wait = try #require(ptx.firstRange(of: "griddepcontrol.wait;"))
    for access in ["ld.global", "st.global", "st.volatile.global"] {
      let first = try #require(ptx.firstRange(of: access))
      #expect(first.lowerBound > wait.upperBound)
    }
  }
}
