/// What the calling thread keeps of its last failure, for `ma_last_error`.
enum Failure {
  static func set(_ function: String, _ error: StatusError, withV: Bool = false) {
    func rename(_ argument: String) -> String { ArgumentNames.name(argument, of: function, withV: withV) }
    ThreadText.set(error.message.text(rename), as: .message)
    ThreadText.set(error.message.argument.map(rename) ?? "", as: .argument)
    ThreadText.set(function, as: .function)
  }
}
