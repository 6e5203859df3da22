import Dispatch

/// Runs the calls of channels one after the other, unless it is held.
final class HeldLoop: SerialExecutor {
    private let queue = DispatchQueue(label: "HeldLoop")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    /// Lets calls wait. ``release()`` has to follow.
    func hold() { queue.suspend() }
    func release() { queue.resume() }
}
