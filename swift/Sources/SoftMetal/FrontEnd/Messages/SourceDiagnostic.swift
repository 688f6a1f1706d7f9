/// An error that the front end itself finds, at a byte offset of its input.
struct SourceDiagnostic {
  let offset: Int
  let message: String
}
