/// Runs `operation`, or returns `late` after the timeout, and cancels the operation.
package func withDeadline<Value: Sendable>(
    after timeout: Duration,
    late: Value,
    _ operation: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask { try await operation() }
        group.addTask {
            try await Task.sleep(for: timeout)
            return late
        }
        defer { group.cancelAll() }
        return try await group.next() ?? late
    }
}
