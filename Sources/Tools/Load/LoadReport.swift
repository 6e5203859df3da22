/// The report of a load run, also as JSON. The module's documentation lists the fields.
///
/// Values that were not measured are absent. New fields do not change `schema`; renamed, removed and redefined ones do.
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
        /// Sent by this run's publishers.
        package var packetsSent: Int
        /// Received by the subscribers, without duplicates.
        package var packetsReceived: Int
        /// Not received, not even as retransmissions, though the server sent them or never got them.
        package var packetsLost: Int
        /// Left out by the server, which then numbers what it sends without a gap.
        package var packetsWithheld: Int
        /// Lost packets in percent of the expected ones.
        package var lossPercent: Double
        /// Received again with a new sequence number.
        package var packetsDuplicated: Int
        /// Received after a newer packet: reordered or restored.
        package var packetsLate: Int
        /// Received after a newer packet without retransmission. Without RTX, retransmissions count here too.
        package var packetsReordered: Int
        /// Received as retransmissions (RFC 4588).
        package var packetsRestored: Int
        /// Packets without a stamp of a load generator.
        package var packetsUnreadable: Int
        /// Subscribers without a packet.
        package var subscribersSilent: Int
        /// The average of all pairs of a subscriber and a publisher that it watches.
        package var framesPerSecond: Double
        /// The longest time between two frames of a subscriber.
        package var longestGapMilliseconds: Double
        /// From the sending of a packet to its reading.
        package var latencyMilliseconds: Times?
    }
    /// The server's process.
    package struct Server: Codable, Sendable {
        package var cpuSeconds: Double
        /// CPU time divided by wall time: 1 is one core.
        package var cores: Double
        /// CPU time per forwarded packet: `packetsForwarded`, or the received packets if that is unknown.
        package var cpuMicrosecondsPerPacket: Double?
        package var residentBytes: Int
        /// The growth of memory per subscriber since before the first subscriber joined.
        package var residentBytesPerSubscriber: Double?
        /// RTP packets sent by the server's metrics, retransmissions not included.
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
        /// CPU time per received packet.
        package var cpuMicrosecondsPerPacket: Double?
        /// The share of time that its loops were busy, 0…1.
        package var busyShare: Double
        /// The share of time that its loops were ready but had no core, 0…1.
        package var waitingShare: Double?
        /// The duration of a turn of a loop. Packets of the next turn wait that long.
        package var turnMilliseconds: Times?
        /// How late frames and audio packets were sent.
        package var latenessMilliseconds: Times?
        /// Datagrams that its sockets could not send.
        package var sendDrops: Int
        /// Datagrams that the kernel dropped because its sockets' buffers were full.
        package var receiveDrops: Int
    }
    /// A subscriber behind a link of its own.
    package struct Viewer: Codable, Sendable {
        /// From 1.
        package var number: Int
        /// The payload that it received.
        package var kilobitsPerSecond: Double
        package var framesPerSecond: Double
        /// Frames that came 150 ms later than usual and after three times the usual time.
        package var freezes: Int
        /// The time between these frames and the ones before them.
        package var freezeSeconds: Double
        /// Changes of the simulcast layer or of the publisher.
        package var layerChanges: Int
        /// Packets to it that its link dropped or lost.
        package var linkDrops: Int
        /// The longest time that a packet to it waited in the queue of its link, since it joined.
        package var queueMillisecondsMax: Double
    }
    /// A measured period.
    package struct Window: Codable, Sendable {
        package var seconds: Double
        package var subscribers: Int
        package var packetsPerSecond: Double
        /// The payload that the subscribers received.
        package var megabitsPerSecond: Double
        package var lossPercent: Double
        package var video: Media?
        package var audio: Media?
        /// Packets that the subscribers requested by NACK.
        package var packetsRequestedAgain: Int
        /// Duplicates that SRTP or the transport dropped.
        package var copiesDropped: Int
        package var keyFrameRequests: Int
        package var server: Server?
        package var generator: Generator
        /// The goals that a step of a ramp missed, as text.
        package var goalsMissed: [String]?
        /// Each subscriber, if they have links of their own.
        package var viewers: [Viewer]?

        package var packetsLost: Int { (video?.packetsLost ?? 0) + (audio?.packetsLost ?? 0) }
        package var packetsWithheld: Int { (video?.packetsWithheld ?? 0) + (audio?.packetsWithheld ?? 0) }
        package var subscribersSilent: Int { (video?.subscribersSilent ?? 0) + (audio?.subscribersSilent ?? 0) }
        /// The higher p99 of video and audio.
        package var p99Milliseconds: Double? {
            [video, audio].compactMap { $0?.latencyMilliseconds?.p99 }.max()
        }
    }
    /// The result of a ramp.
    package struct Ramp: Codable, Sendable {
        package var lossPercentMax: Double
        package var p99MillisecondsMax: Double
        /// Subscribers in the last step that met the goals; 0 without one.
        package var subscribersSustained: Int
        /// Subscribers in the step that ended the ramp; absent when all steps met the goals.
        package var subscribersAtBreak: Int?
        /// The reasons of the end, as text.
        package var reasons: [String]
        /// Whether the load generator reached its limit, not the server.
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
    /// The offered SRTP profiles: `gcm`, `gcm256`, `cm`.
    package var srtpProfiles: [String]
    package var publishersConnected = 0
    package var subscribersConnected = 0
    /// The number of clients that did not connect, by reason.
    package var failures: [String: Int] = [:]
    /// The number of clients that ended after they were connected, by reason.
    package var disconnections: [String: Int] = [:]
    /// From the first request to the server until the client is connected.
    package var connectMilliseconds: Times?
    /// The number of times that a client whose session ended was back, with `rejoinURLs` only.
    package var returned: Int?
    /// From the end of a session until the client receives media again, or is connected if it only publishes.
    package var returnMilliseconds: Times?
    /// The steps of the ramp. A step that missed the goals is measured again and listed twice.
    package var steps: [Window] = []
    package var ramp: Ramp?
    /// The measured window, or the last step of a ramp; absent when the run was interrupted before.
    package var window: Window?
    /// Over Sora's signaling: tracks of connected senders that the server did not offer.
    package var tracksMissing: Int?
    /// Reasons to doubt the results.
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
        if !configuration.rejoinURLs.isEmpty { returned = 0 }
    }

    /// Clients that could not connect.
    package var failedClients: Int { failures.values.reduce(0, +) }
    /// Whether every subscriber got every packet of every window.
    package var isLossless: Bool {
        let windows = steps + (window.map { [$0] } ?? [])
        return !windows.isEmpty && disconnections.isEmpty && tracksMissing ?? 0 == 0
            && windows.allSatisfy { $0.packetsLost == 0 && $0.packetsWithheld == 0 && $0.subscribersSilent == 0 }
    }
}
