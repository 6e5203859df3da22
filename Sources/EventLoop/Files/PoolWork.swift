internal import CUV

/// Work on a thread of libuv's pool, and its completion on the loop's thread.
@safe
class PoolWork {
    private let loop: EventLoop
    private let request: UnsafeMutablePointer<uv_work_t>

    fileprivate init(on loop: EventLoop) {
        self.loop = loop
        unsafe request = .allocate(capacity: 1)
        unsafe request.initialize(to: uv_work_t())
    }

    deinit { unsafe request.deallocate() }

    /// On a thread of the pool.
    fileprivate func run() {}
    /// On the loop's thread.
    /// - Parameter isDone: `false` when the work was given up before it began.
    fileprivate func completed(isDone: Bool) {}

    /// - Returns: whether the pool took the work.
    fileprivate func start() -> Bool {
        unsafe request.pointee.data = Unmanaged.passRetained(self).toOpaque()
        let result = unsafe uv_queue_work(
            loop.uvLoop,
            request,
            { request in
                guard let data = unsafe request?.pointee.data else { return }
                unsafe Unmanaged<PoolWork>.fromOpaque(data).takeUnretainedValue().run()
            },
            { request, status in
                guard let data = unsafe request?.pointee.data else { return }
                let work = unsafe Unmanaged<PoolWork>.fromOpaque(data).takeRetainedValue()
                work.loop.beginTurn()
                work.completed(isDone: status == 0)
            }
        )
        if result < 0 { unsafe Unmanaged.passUnretained(self).release() }
        return result >= 0
    }
}

/// Work with a result.
private final class PoolTask<Value: Sendable>: PoolWork {
    private let body: @Sendable () -> Value
    private let complete: (Value?) -> Void
    /// Written on the pool's thread, read on the loop's behind it.
    private var value: Value?

    init(on loop: EventLoop, _ body: @escaping @Sendable () -> Value, then complete: @escaping (Value?) -> Void) {
        self.body = body
        self.complete = complete
        super.init(on: loop)
    }

    override func run() { value = body() }
    override func completed(isDone: Bool) { complete(isDone ? value : nil) }
}

extension LoopFiles {
    /// Runs work that waits for the disk on a thread of the pool, such as with a ``BlockingFile``.
    /// - Parameter complete: gets the result on the loop; `nil` when the work did not begin.
    package func work<Value: Sendable>(
        _ body: @escaping @Sendable () -> Value,
        then complete: @escaping (Value?) -> Void
    ) {
        began()
        guard let loop = openLoop else {
            ended()
            return complete(nil)
        }
        let task = PoolTask(on: loop, body) { [self] value in
            ended()
            complete(value)
        }
        guard task.start() else {
            ended()
            return complete(nil)
        }
    }
}
