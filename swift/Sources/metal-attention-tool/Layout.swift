/// What `ma_layout_json` returns. Sizes, alignments and offsets are in bytes.
struct Layout: Decodable {
  struct Structure: Decodable {
    let name: String
    let size: Int
    let alignment: Int
    let fields: [Field]
  }

  struct Field: Decodable {
    let name: String
    let offset: Int
    let size: Int
    let type: String
    /// Elements of an array field; 1 for a single value.
    let count: Int
  }

  let abiVersion: Int
  let structs: [Structure]
}
