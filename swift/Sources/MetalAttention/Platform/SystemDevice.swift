/// What the system gives for a device's name, or the reason why it gives none.
enum SystemDevice {
  case device(any MTLDevice)
  case unavailable(String)
  case notUnderstood(String)
}
