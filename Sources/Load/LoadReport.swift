/// What a load run measured, and the schema of its JSON, which the module's documentation lists.
///
/// What was not measured is absent. Fields may be added; one that is renamed, removed or changes its meaning changes
/// `schema`.
package struct LoadReport: Codable, Sendable {
    /// Times in milliseconds, to within 3 %.
    package struct Times: Codable, Sendable {
        package var p50: Double
        package var p95: Double
        package var p99: Double
        package var p999: Double
        package var max: Double
    }
    /// One kind of media during a window, all subscribers together.
    package struct Media: Codable, Sendable {
        /// Made by this run's publishers.
        package var packetsSent: Int
        /// By the subscribers, each packet once.
        package var packetsReceived: Int
        /// Never came, retransmission included.
        package var packetsLost: Int
        /// Of what should have come, in percent.
        package var lossPercent: Double
        /// Came a second time as a packet of its own.
        package var packetsDuplicated: Int
        /// Behind a newer one: reordered or restored.
        package var packetsLate: Int
        /// Overtaken by a newer one on their way; without RTX those sent again too.
        package var packetsReordered: Int
        /// Lost at first and sent again (RFC 4588).
        package var packetsRestored: Int
        /// Without a stamp of a load generator.
        package var packetsUnreadable: Int
        /// Subscribers that nothing arrived at.
        package var subscribersSilent: Int
        /// Of each subscriber on average; of one that watches several publishers, of each of them.
        package var framesPerSecond: Double
        /// The longest that a subscriber waited for its next frame.
        package var longestGapMilliseconds: Double
        /// From the making of a packet to the reading of it.
        package var latencyMilliseconds: Times?
    }
    /// The server's process.
    package struct Server: Codable, Sendable {
        package var cpuSeconds: Double
        /// CPU time by wall time: 1 is one core.
        package var cores: Double
        /// CPU time by packets that were forwarded: `packetsForwarded` or else those that the subscribers received.
        package var cpuMicrosecondsPerPacket: Double?
        package var residentBytes: Int
        /// What the memory grew by since before the first subscriber joined, for each of them.
        package var residentBytesPerSubscriber: Double?
        /// RTP packets that the server's metrics count as sent, retransmissions not included.
        package var packetsForwarded: Int?
        package var retransmissionsSent: Int?
        /// Datagrams that the server's sockets dropped, in either direction.
        package var datagramsDropped: Int?
    }
    /// This process.
    package struct Generator: Codable, Sendable {
        package var threads: Int
        package var cpuSeconds: Double?
        package var residentBytes: Int?
        /// CPU time by packets received.
        package var cpuMicrosecondsPerPacket: Double?
        /// How much of the time its loops had something to do, 0…1.
        package var busyShare: Double
        /// How much of the time its loops were ready but had no core, 0…1.
        package var waitingShare: Double?
        /// How long a turn of a loop took, for which the packets of the turn after it waited.
        package var turnMilliseconds: Times?
        /// How late frames and audio packets were made.
        package var latenessMilliseconds: Times?
        /// Datagrams that its sockets could not send.
        package var sendDrops: Int
        /// Datagrams that the kernel dropped because its sockets' buffers were full.
        package var receiveDrops: Int
    }
    /// A measured stretch of time.
    package struct Window: Codable, Sendable {
        package var seconds: Double
        package var subscribers: Int
        package var packetsPerSecond: Double
        /// Payload that the subscribers received.
        package var megabitsPerSecond: Double
        package var lossPercent: Double
        package var video: Media?
        package var audio: Media?
        /// Packets that the subscribers asked for again.
        package var packetsRequestedAgain: Int
        /// Copies of packets that had come already, which SRTP or the transport dropped.
        package var copiesDropped: Int
        package var keyFrameRequests: Int
        package var server: Server?
        package var generator: Generator
        /// Of a ramp's step: the goals that it missed, in words.
        package var goalsMissed: [String]?

        package var packetsLost: Int { (video?.packetsLost ?? 0) + (audio?.packetsLost ?? 0) }
        package var subscribersSilent: Int { (video?.subscribersSilent ?? 0) + (audio?.subscribersSilent ?? 0) }
        /// Of the kind of media that is worse off.
        package var p99Milliseconds: Double? {
            [video, audio].compactMap { $0?.latencyMilliseconds?.p99 }.max()
        }
    }
    /// How a ramp ended.
    package struct Ramp: Codable, Sendable {
        package var lossPercentMax: Double
        package var p99MillisecondsMax: Double
        /// The subscribers of the last step that met the goals; 0 when none did.
        package var subscribersSustained: Int
        /// The subscribers of the step that ended the ramp; absent when the goals were met to the end.
        package var subscribersAtBreak: Int?
        /// What ended it, in words.
        package var reasons: [String]
        /// Whether it was this generator that gave in, rather than the server.
        package var isGeneratorsLimit: Bool
    }

    package static let schema = "nagare-load/1"

    package var schema = Self.schema
    package var url: String
    /// `whip` or `sora`.
    package var signaling: String
    package var channel: String
    package var channels: Int
    package var publishers: Int
    package var subscribers: Int
    package var conferenceMembers: Int?
    package var videoKilobitsPerSecond: Int
    package var framesPerSecond: Int
    package var hasAudio: Bool
    /// What the clients offered: `gcm`, `gcm256`, `cm`.
    package var srtpProfiles: [String]
    package var publishersConnected = 0
    package var subscribersConnected = 0
    /// Why clients did not connect, and how many each.
    package var failures: [String: Int] = [:]
    /// Why clients ended after they were connected, and how many each.
    package var disconnections: [String: Int] = [:]
    /// From the first word to the server to the first moment that media may flow.
    package var connectMilliseconds: Times?
    /// The steps of the ramp; one that missed the goals was measured a second time and is there twice.
    package var steps: [Window] = []
    package var ramp: Ramp?
    /// The measured window with everybody connected, of a ramp its last step; absent when the run was ended before.
    package var window: Window?
    /// Of Sora's signaling: tracks that the server never offered, though their senders were connected.
    package var tracksMissing: Int?
    /// What makes the figures doubtful.
    package var warnings: [String] = []
    package var isInterrupted = false

    init(_ configuration: LoadConfiguration) {
        url = configuration.url
        signaling = configuration.signaling.rawValue
        channel = configuration.channel
        channels = configuration.channels
        publishers = configuration.publisherCount
        subscribers = configuration.subscriberCount
        conferenceMembers = configuration.conferenceMembers
        videoKilobitsPerSecond = configuration.videoBitsPerSecond / 1_000
        framesPerSecond = configuration.framesPerSecond
        hasAudio = configuration.sendsAudio
        srtpProfiles = configuration.srtpProfiles.map(\.loadName)
    }

    /// Clients that could not connect.
    package var failedClients: Int { failures.values.reduce(0, +) }
    /// Whether every subscriber got every packet of every window.
    package var isLossless: Bool {
        let windows = steps + (window.map { [$0] } ?? [])
        return !windows.isEmpty && disconnections.isEmpty && tracksMissing ?? 0 == 0
            && windows.allSatisfy { $0.packetsLost == 0 && $0.subscribersSilent == 0 }
    }
}
