#if canImport(Darwin)
    public import Foundation

    /// WebSockets of `URLSession`, for apps on Apple's platforms.
    public struct URLSessionSignaling: SignalingTransport {
        private let session: URLSession

        public init(session: URLSession = .shared) { self.session = session }

        public func connect(to url: URL) async throws -> any SignalingSocket {
            let task = session.webSocketTask(with: url)
            task.maximumMessageSize = 1 << 20
            task.resume()
            let socket = URLSessionSocket(task)
            // A ping is answered by an open WebSocket only. Its handler may be called twice or never when the connection is lost.
            let (answers, answer) = AsyncThrowingStream.makeStream(of: Void.self)
            task.sendPing { error in answer.finish(throwing: error) }
            try await withTaskCancellationHandler {
                for try await _ in answers {}
                try Task.checkCancellation()
            } onCancel: {
                task.cancel()
            }
            socket.begin()
            return socket
        }
    }

    private final class URLSessionSocket: SignalingSocket {
        let events: AsyncStream<SignalingSocketEvent>
        private let sink: AsyncStream<SignalingSocketEvent>.Continuation
        private let outgoing: AsyncStream<String>.Continuation
        private let texts: AsyncStream<String>
        private let task: URLSessionWebSocketTask

        init(_ task: URLSessionWebSocketTask) {
            self.task = task
            (events, sink) = AsyncStream.makeStream(of: SignalingSocketEvent.self)
            (texts, outgoing) = AsyncStream.makeStream(of: String.self)
        }

        func begin() {
            Task { [task, texts] in
                for await text in texts { try? await task.send(.string(text)) }
                task.cancel(with: .normalClosure, reason: nil)
            }
            Task { [task, sink] in
                do {
                    while true {
                        if case .string(let text) = try await task.receive() { sink.yield(.text(text)) }
                    }
                } catch {
                    let code = task.closeCode.rawValue
                    let reason = task.closeReason.map { String(decoding: $0, as: UTF8.self) } ?? ""
                    sink.yield(.ended(code > 0 ? .closed(code: code, reason: reason) : .lost("\(error)")))
                    sink.finish()
                }
            }
        }

        func send(_ text: String) { outgoing.yield(text) }

        /// Ends after what was sent.
        func close() { outgoing.finish() }
    }
#endif
