/// The file system as clang sees it while it preprocesses a source: the source and a folder of headers, and no other file
/// of the machine, whatever the source includes.
enum FileOverlay {
  /// The overlay's text, for `-ivfsoverlay`.
  static func of(input: String, folder: String) -> [UInt8] {
    let entries = [(input, "file"), (folder, "directory-remap")].map { path, type in
      "{\"name\":\(quoted(path)),\"type\":\"\(type)\",\"external-contents\":\(quoted(path))}"
    }
    let head = "{\"version\":0,\"case-sensitive\":\"true\",\"redirecting-with\":\"redirect-only\",\"roots\":["
    return Array((head + entries.joined(separator: ",") + "]}").utf8)
  }

  private static func quoted(_ path: String) -> String {
    "\"" + path.flatMap { $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" } + "\""
  }
}
