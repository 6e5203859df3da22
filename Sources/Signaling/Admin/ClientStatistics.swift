public import JSON
public import Room
import Synchronization

/// The statistics that clients last reported of themselves, for the operators' API.
public final class ClientStatistics: Sendable {
    /// The longest report that is kept, in bytes of JSON. A call of a hundred streams reports about half of it.
    static let reportBytesMax = 256 * 1024
    /// All reports that are kept, in bytes: 10,000 clients of a usual call. Beyond that new clients' are not kept.
    static let bytesMax = 128 * 1024 * 1024

    /// One client's last report.
    struct Report: Sendable {
        let channel: ChannelName
        let unixNanoseconds: Int64
        /// An array of objects as JSON text.
        let text: String
    }
    private struct State {
        var reports: [ParticipantID: Report] = [:]
        var bytes = 0
    }
    private let state = Mutex(State())

    public init() {}

    /// Keeps what a client reported, in place of what it reported before.
    /// - Parameters:
    ///   - reports: an array of objects; anything else is ignored, and so is one that is too long.
    ///   - unixNanoseconds: when it came, since 1970 UTC.
    public func record(
        _ participant: ParticipantID,
        channel: ChannelName,
        reports: JSONValue,
        unixNanoseconds: Int64
    ) {
        guard let list = reports.array, list.allSatisfy({ $0.object != nil }) else { return }
        let text = reports.text
        let count = text.utf8.count
        guard count <= Self.reportBytesMax else { return }
        state.withLock { state in
            let rest = state.bytes - (state.reports[participant]?.text.utf8.count ?? 0)
            guard rest + count <= Self.bytesMax else { return }
            state.bytes = rest + count
            state.reports[participant] = Report(channel: channel, unixNanoseconds: unixNanoseconds, text: text)
        }
    }

    /// Drops what a participant that is gone has reported.
    public func forget(_ participant: ParticipantID) {
        state.withLock { state in
            guard let report = state.reports.removeValue(forKey: participant) else { return }
            state.bytes -= report.text.utf8.count
        }
    }

    subscript(_ participant: ParticipantID) -> Report? { state.withLock { $0.reports[participant] } }
}
