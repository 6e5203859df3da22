import Logging
import Synchronization

/// A log that keeps each entry.
final class RecordedLog: Sendable {
    struct Entry: Sendable {
        let level: Logger.Level
        let message: String
        let fields: [String: String]
    }

    private struct Handler: LogHandler {
        let log: RecordedLog
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }
        func log(event: LogEvent) {
            let fields = metadata.merging(event.metadata ?? [:]) { $1 }
            log.append(Entry(level: event.level, message: "\(event.message)", fields: fields.mapValues { "\($0)" }))
        }
    }

    private let state = Mutex<[Entry]>([])

    private func append(_ entry: Entry) { state.withLock { $0.append(entry) } }

    var entries: [Entry] { state.withLock { $0 } }
    func entries(_ message: String) -> [Entry] { entries.filter { $0.message == message } }
    /// The values of all entries.
    var values: [String] { entries.flatMap { $0.fields.values } }

    var logger: Logger { Logger(label: "test") { _ in Handler(log: self) } }
}
