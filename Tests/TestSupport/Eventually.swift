/// A condition that did not come true in time.
public struct ConditionNotMet: Error, CustomStringConvertible {
    public let description: String
}

/// Waits until a condition holds that other tasks, threads or processes bring about.
///
/// It sleeps between two looks, so that the others have the processor. The limit counts real time, but a look and its
/// pause count for a second at most: when they take longer, this process had no processor, and neither had those that
/// bring the condition about.
/// - Parameter name: says what is awaited, as in "the viewer plays the publisher".
/// - Throws: ``ConditionNotMet`` with the name after 60 s, and what the condition throws.
public func eventually(
    _ name: String,
    file: StaticString = #fileID,
    line: UInt = #line,
    _ condition: () async throws -> Bool
) async throws {
    var waited = Duration.zero
    while true {
        let start = ContinuousClock.now
        if try await condition() { return }
        guard waited < waitLimit else {
            throw ConditionNotMet(description: "\(file):\(line): waited for 60 s in vain until \(name)")
        }
        try await Task.sleep(for: .milliseconds(2))
        waited += min(ContinuousClock.now - start, .seconds(1))
    }
}

extension AsyncStream where Element: Sendable {
    /// The next `count` elements, or those before the stream's end.
    /// - Throws: ``ConditionNotMet`` when they have not come after the time of ``eventually(_:file:line:_:)``.
    public func collect(_ count: Int, file: StaticString = #fileID, line: UInt = #line) async throws -> [Element] {
        try await withThrowingTaskGroup(of: [Element].self) { group in
            defer { group.cancelAll() }
            group.addTask {
                var elements: [Element] = []
                var iterator = makeAsyncIterator()
                while elements.count < count, let element = await iterator.next() { elements.append(element) }
                return elements
            }
            group.addTask {
                try await eventually("\(count) elements of a stream are there", file: file, line: line) { false }
                return []
            }
            return try await group.next() ?? []
        }
    }
}

/// The longest wait for one condition. The time limits of the suites are longer.
private let waitLimit = Duration.seconds(60)
