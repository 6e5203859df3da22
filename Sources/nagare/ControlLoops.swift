import EventLoop

/// The event loops that channels run on. They carry no media, so that a burst of joins shares no thread with packets.
struct ControlLoops {
    private let loops: [EventLoop]

    /// Starts `count` loops; when one fails, none is left running.
    static func start(count: Int) async throws(EventLoopError) -> Self {
        var loops: [EventLoop] = []
        for index in 0..<count {
            let loop = EventLoop(name: "control-\(index)")
            do throws(EventLoopError) {
                try loop.start()
            } catch {
                for loop in loops { await loop.stop() }
                throw error
            }
            loops.append(loop)
        }
        return Self(loops: loops)
    }

    var executors: [any SerialExecutor] { loops.map(\.executor) }

    func stop() async {
        for loop in loops { await loop.stop() }
    }
}
