import Base
import Wire

/// What one peer sends, by SSRC: its received streams, the RTX streams that repeat them, and the SSRCs under which it only
/// reports.
struct StreamDirectory {
    /// One SSRC that the peer sends. Its stream is in `streams`, which keeps it alive.
    struct Source {
        let ssrc: SSRC
        let isRTX: Bool
        let stream: Unretained<ReceivedStream>
    }

    private(set) var streams: ContiguousArray<ReceivedStream> = [] {
        didSet { unretained = ContiguousArray(streams.map(Unretained.init)) }
    }
    /// The same, to be gone through in every turn without counting references.
    private(set) var unretained: ContiguousArray<Unretained<ReceivedStream>> = []
    /// Which stream the packets of an SSRC are of: all of `streams`, and what repeats them.
    private var sources: ContiguousArray<Source> = []
    /// Where the last packet's source stands; packets of one come in runs.
    private var lastSource = 0
    /// SSRCs of tracks that were removed, oldest first: their last packets may still be under way.
    private var ended: ContiguousArray<SSRC> = []
    /// SSRCs that send RTCP and no media, and when each did last.
    private(set) var reporters: [(ssrc: SSRC, receivedAt: Instant)] = []
    /// The newest of them. Its time is kept here, where it is in the cache.
    private var newestReporter: (ssrc: SSRC, receivedAt: Instant)?

    /// Silence after which a reporter's place may be another source's: browsers report every few seconds.
    private static let reporterSilence = Interval.seconds(15)
    /// As many as the table of sources has places.
    private static let reportersMax = 64
    private static let endedMax = 64

    func stream(_ ssrc: SSRC) -> ReceivedStream? { streams.first { $0.ssrc == ssrc } }

    /// The stream of an SSRC, as every packet finds it.
    @inline(__always)
    mutating func source(_ ssrc: SSRC) -> Source? {
        if lastSource < sources.count, sources[lastSource].ssrc == ssrc { return sources[lastSource] }
        var index = 0
        while index < sources.count {
            if sources[index].ssrc == ssrc {
                lastSource = index
                return sources[index]
            }
            index += 1
        }
        return nil
    }

    mutating func add(_ stream: ReceivedStream) {
        streams.append(stream)
        sources.append(Source(ssrc: stream.ssrc, isRTX: false, stream: Unretained(stream)))
    }

    /// Learns which stream an RTX SSRC repeats.
    mutating func addRTX(_ ssrc: SSRC, of stream: ReceivedStream) {
        sources.removeAll { $0.isRTX && $0.stream.refers(to: stream) }
        // An SSRC that the peer uses for media already keeps meaning that.
        if source(ssrc) == nil { sources.append(Source(ssrc: ssrc, isRTX: true, stream: Unretained(stream))) }
        stream.rtxSSRC = ssrc
    }

    mutating func remove(_ stream: ReceivedStream) {
        sources.removeAll { $0.stream.refers(to: stream) }
        streams.removeAll { $0 === stream }
    }

    /// A track was removed: none of its SSRCs names another one's packets from now on.
    mutating func noteEnded(_ ssrcs: some Sequence<SSRC>) {
        ended.append(contentsOf: ssrcs)
        if ended.count > Self.endedMax { ended.removeFirst(ended.count - Self.endedMax) }
    }

    func hasEnded(_ ssrc: SSRC) -> Bool { ended.contains(ssrc) }

    // MARK: - SSRCs that only report
    //
    // Some browsers report on each m-section under an SSRC of its own. So a peer uses a new one whenever somebody joins, and
    // the SRTP table of its sources, which is bounded, would be full after some comings and goings of others.

    /// Notes who sent an RTCP packet that was authentic.
    mutating func noteReporter(_ ssrc: SSRC, at now: Instant) {
        if newestReporter?.ssrc == ssrc {
            newestReporter?.receivedAt = now
            return
        }
        storeNewestReporter()
        if !reporters.contains(where: { $0.ssrc == ssrc }) {
            guard reporters.count < Self.reportersMax, source(ssrc) == nil else { return }
            reporters.append((ssrc, now))
        }
        newestReporter = (ssrc, now)
    }

    private mutating func storeNewestReporter() {
        guard let newest = newestReporter else { return }
        newestReporter = nil
        if let index = reporters.firstIndex(where: { $0.ssrc == newest.ssrc }) {
            reporters[index].receivedAt = newest.receivedAt
        }
    }

    /// Forgets the reporter that was silent for the longest time.
    ///
    /// Its old packets could be replayed from then on: what they ask for is bounded, and what they report is old.
    /// - Returns: its SSRC; `nil` when none was silent for long.
    mutating func removeSilentReporter(at now: Instant) -> SSRC? {
        storeNewestReporter()
        let sources = sources
        reporters.removeAll { reporter in sources.contains { $0.ssrc == reporter.ssrc } }
        guard let oldest = reporters.indices.min(by: { reporters[$0].receivedAt < reporters[$1].receivedAt }),
            now - reporters[oldest].receivedAt >= Self.reporterSilence
        else { return nil }
        return reporters.remove(at: oldest).ssrc
    }
}
