package import ChannelTypes
package import History
package import JSON
import Synchronization

/// The latest statistics of each client, as reported by the client, for the admin API.
package final class ClientStatistics: Sendable {
    /// The maximum length of a stored report, in bytes of JSON. A call of a hundred streams has about half of it.
    static let reportBytesMax = 256 * 1024
    /// The maximum length of all stored reports, in bytes: 10,000 clients of a typical call. Further reports are dropped.
    static let bytesMax = 128 * 1024 * 1024

    /// One client's last report.
    package struct Report: Sendable {
        package let channel: ChannelName
        package let unixNanoseconds: Int64
        /// An array of objects as JSON text.
        package let text: String
        let playback: ClientPlayback?
    }
    private struct State {
        var reports: [ParticipantID: Report] = [:]
        var bytes = 0
    }
    private let state = Mutex(State())
    private let onReport: @Sendable (_ text: String, ParticipantID, ChannelName, Int64) -> Void

    /// - Parameter onReport: is given each report with its client, its channel and the time of arrival in nanoseconds since 1970 UTC.
    package init(
        onReport:
            @escaping @Sendable (
                _ text: String, ParticipantID, ChannelName, Int64
            ) -> Void = { _, _, _, _ in }
    ) {
        self.onReport = onReport
    }

    /// Stores a client's report in place of its previous one.
    /// - Parameters:
    ///   - reports: An array of objects. Other values and reports that are too long are ignored.
    ///   - unixNanoseconds: The time of arrival, in nanoseconds since 1970 UTC.
    package func record(
        _ participant: ParticipantID,
        channel: ChannelName,
        reports: JSONValue,
        unixNanoseconds: Int64
    ) {
        guard let list = reports.array, list.allSatisfy({ $0.object != nil }) else { return }
        let text = reports.text
        let count = text.utf8.count
        guard count <= Self.reportBytesMax else { return }
        onReport(text, participant, channel, unixNanoseconds)
        state.withLock { state in
            let rest = state.bytes - (state.reports[participant]?.text.utf8.count ?? 0)
            guard rest + count <= Self.bytesMax else { return }
            state.bytes = rest + count
            state.reports[participant] = Report(
                channel: channel,
                unixNanoseconds: unixNanoseconds,
                text: text,
                playback: ClientPlayback(reports: list)
            )
        }
    }

    /// Drops the report of a removed participant.
    package func forget(_ participant: ParticipantID) {
        state.withLock { state in
            guard let report = state.reports.removeValue(forKey: participant) else { return }
            state.bytes -= report.text.utf8.count
        }
    }

    package subscript(_ participant: ParticipantID) -> Report? { state.withLock { $0.reports[participant] } }

    /// What a client reported last of its playback; `nil` before its first report.
    package func playback(of participant: ParticipantID) -> ClientPlayback? { self[participant]?.playback }
}

extension ClientPlayback {
    /// Adds up the received video of statistics (W3C WebRTC Statistics, `inbound-rtp`); `nil` without any.
    init?(reports: [JSONValue]) {
        let videos = reports.filter { $0["type"]?.string == "inbound-rtp" && $0["kind"]?.string == "video" }
        guard !videos.isEmpty else { return nil }
        self.init()
        for video in videos {
            freezes &+= UInt64(clamping: video["freezeCount"]?.integer ?? 0)
            let seconds = video["totalFreezesDuration"]?.double ?? 0
            // A client may claim anything.
            frozen &+= UInt64(exactly: (min(max(seconds, 0), 1e9) * 1_000).rounded()) ?? 0
        }
    }
}
