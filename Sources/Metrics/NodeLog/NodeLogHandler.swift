package import Base
import ChannelTypes
import Foundation
import Glibc
package import Logging
import Synchronization

/// Writes the log of the node to standard error, a line an entry.
package struct NodeLogHandler: LogHandler {
    private let label: String
    private let format: LogFormat
    private let write: @Sendable (String) -> Void
    private let threshold: Replaceable<Logger.Level>
    /// The least level of this logger, whatever the threshold is.
    private let floor: Logger.Level
    /// A level of this logger's own, in place of the threshold.
    private var ownLevel: Logger.Level?
    package var metadata: Logger.Metadata = [:]

    /// - Parameters:
    ///   - threshold: of all loggers.
    ///   - floor: the least level of this one, whatever the threshold is.
    ///   - write: takes a line without its end.
    package init(
        label: String,
        threshold: Replaceable<Logger.Level>,
        floor: Logger.Level = .trace,
        format: LogFormat,
        write: @escaping @Sendable (String) -> Void = { StandardError.writeLine($0) }
    ) {
        self.label = label
        self.threshold = threshold
        self.floor = floor
        self.format = format
        self.write = write
    }

    package var logLevel: Logger.Level {
        get { max(ownLevel ?? threshold.current, floor) }
        set { ownLevel = newValue }
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        var fields = metadata
        if let error = event.error { fields["error"] = "\(error)" }
        if let own = event.metadata { fields.merge(own) { $1 } }
        let line = LogLine(
            time: Date(),
            level: event.level,
            label: label,
            message: event.message.description,
            metadata: fields
        )
        write(line.text(format))
    }
}

/// Standard error, for whole lines.
private enum StandardError {
    /// Lines of several threads do not mix.
    private static let turn = Mutex(())

    static func writeLine(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        turn.withLock { _ in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = unsafe rest.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
                if count < 0 && errno == EINTR { continue }
                // Nobody reads it: there is no place to say so.
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
    }
}
