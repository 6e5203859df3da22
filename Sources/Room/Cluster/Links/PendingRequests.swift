import ChannelTypes
internal import Room
import Synchronization

/// The questions of a node that wait for the answers of others.
final class PendingRequests: Sendable {
    private struct State {
        var waiting: [UInt32: (node: NodeID, answer: CheckedContinuation<[UInt8], any Error>)] = [:]
        var next: UInt32 = 0
    }

    private static let questionsMax = 4_096

    private let state = Mutex(State())

    /// Waits for the answer to a question.
    /// - Parameter send: sends it under its number; returns `false` without a link.
    func ask(
        _ node: NodeID,
        within duration: Duration,
        _ send: (UInt32) -> Bool
    ) async throws(NodeRequestError) -> [UInt8] {
        let number = state.withLock { state -> UInt32 in
            state.next &+= 1
            return state.next
        }
        let timeout = Task { [self] in
            try? await Task.sleep(for: duration)
            if !Task.isCancelled { finish(number, .failure(.timedOut)) }
        }
        defer { timeout.cancel() }
        do {
            return try await withCheckedThrowingContinuation { continuation in
                let isTaken = state.withLock { state in
                    guard state.waiting.count < Self.questionsMax else { return false }
                    state.waiting[number] = (node, continuation)
                    return true
                }
                guard isTaken else { return continuation.resume(throwing: NodeRequestError.busy) }
                if !send(number) { finish(number, .failure(.noLink)) }
            }
        } catch {
            throw error as? NodeRequestError ?? .noLink
        }
    }

    /// - Parameter node: whose answer counts; `nil` for what ends the question otherwise.
    func finish(_ number: UInt32, _ result: Result<[UInt8], NodeRequestError>, from node: NodeID? = nil) {
        let question = state.withLock { state -> CheckedContinuation<[UInt8], any Error>? in
            guard let question = state.waiting[number], node == nil || question.node == node else { return nil }
            state.waiting[number] = nil
            return question.answer
        }
        question?.resume(with: result.mapError { $0 })
    }

    /// The link to a node is lost.
    func fail(to node: NodeID) {
        let numbers = state.withLock { $0.waiting.filter { $0.value.node == node }.map(\.key) }
        for number in numbers { finish(number, .failure(.noLink)) }
    }

    func failAll() {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for question in waiting { question.answer.resume(throwing: NodeRequestError.noLink) }
    }
}
