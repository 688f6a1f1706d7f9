#if canImport(SoftMetal)
  import Dispatch
  import Synchronization

  enum Concurrently {
    /// Works through a list on as many threads as there may be compilers. The first error ends it.
    static func run<Item>(_ items: [Item], jobs: Int, _ work: (Item) throws -> Void) throws {
      let next = Atomic(0)
      let failure = Mutex<(any Error)?>(nil)
      DispatchQueue.concurrentPerform(iterations: jobs) { _ in
        while failure.withLock({ $0 == nil }) {
          let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
          guard index < items.count else { return }
          do {
            try work(items[index])
            print("\(index + 1) of \(items.count)")
          } catch {
            failure.withLock { $0 = error }
          }
        }
      }
      if let error = failure.withLock({ $0 }) { throw error }
    }
  }
#endif
