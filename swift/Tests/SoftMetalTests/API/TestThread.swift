import Glibc

/// A thread that runs a closure.
final class TestThread {
  private final class Body {
    let run: () -> Void

    init(_ run: @escaping () -> Void) {
      self.run = run
    }
  }

  private var thread = pthread_t()

  init(_ run: @escaping () -> Void) {
    let body = Unmanaged.passRetained(Body(run))
    pthread_create(
      &thread, nil,
      { argument in
        if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
        return nil
      }, body.toOpaque())
  }

  func join() {
    pthread_join(thread, nil)
  }
}
