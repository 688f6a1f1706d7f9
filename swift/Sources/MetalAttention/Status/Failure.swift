/// What the calling thread keeps of its last failure, for `ma_last_error`.
enum Failure {
  static func set(_ function: String, _ error: StatusError, withV: Bool = false) {
    func known(_ argument: String) -> String? { ArgumentNames.name(argument, of: function, withV: withV) }
    ThreadText.set(error.message.text(known), as: .message)
    ThreadText.set(error.message.argument?.name(known) ?? "", as: .argument)
    ThreadText.set(function, as: .function)
  }
}
