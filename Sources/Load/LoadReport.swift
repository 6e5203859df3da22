/// What a load run measured.
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
        package var packetsLost: Int
        package var packetsDuplicated: Int
        /// Behind a newer one: reordered, or lost once and retransmitted.
        package var packetsLate: Int
        /// Without a stamp of a load generator.
        package var packetsUnreadable: Int
        /// Subscribers that nothing arrived at.
        package var subscribersSilent: Int
        /// Of each subscriber on average.
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
        /// CPU time by packets that the subscribers received.
        package var cpuMicrosecondsPerPacket: Double?
        package var residentBytes: Int
    }
    /// This process.
    package struct Generator: Codable, Sendable {
        package var threads: Int
        package var cpuSeconds: Double?
        /// How much of the time its loops had something to do, 0…1.
        package var busyShare: Double
        /// How long a turn of a loop took, for which the packets of the turn after it waited.
        package var turnMilliseconds: Times?
        /// How late frames and audio packets were made.
        package var latenessMilliseconds: Times?
        package var sendDrops: Int
        package var receiveDrops: Int
    }
    /// A measured stretch of time.
    package struct Window: Codable, Sendable {
        package var seconds: Double
        package var subscribers: Int
        package var packetsPerSecond: Double
        /// Payload that the subscribers received.
        package var megabitsPerSecond: Double
        package var video: Media?
        package var audio: Media?
        /// Packets that the subscribers asked for again.
        package var packetsRequestedAgain: Int
        package var keyFrameRequests: Int
        package var server: Server?
        package var generator: Generator

        package var packetsLost: Int { (video?.packetsLost ?? 0) + (audio?.packetsLost ?? 0) }
        package var subscribersSilent: Int { (video?.subscribersSilent ?? 0) + (audio?.subscribersSilent ?? 0) }
    }

    package var url: String
    package var channel: String
    package var publishers: Int
    package var subscribers: Int
    package var videoKilobitsPerSecond: Int
    package var framesPerSecond: Int
    package var hasAudio: Bool
    package var publishersConnected = 0
    package var subscribersConnected = 0
    /// Why clients did not connect, and how many each.
    package var failures: [String: Int] = [:]
    /// Why clients ended after they were connected, and how many each.
    package var disconnections: [String: Int] = [:]
    /// From the offer to the first moment that media may flow.
    package var connectMilliseconds: Times?
    /// The steps of the ramp.
    package var steps: [Window] = []
    /// The measured window with everybody connected; `nil` when the run was ended before.
    package var window: Window?
    /// What makes the figures doubtful.
    package var warnings: [String] = []
    package var isInterrupted = false

    init(_ configuration: LoadConfiguration) {
        url = configuration.url
        channel = configuration.channel
        publishers = configuration.publishers
        subscribers = configuration.subscribers
        videoKilobitsPerSecond = configuration.videoBitsPerSecond / 1_000
        framesPerSecond = configuration.framesPerSecond
        hasAudio = configuration.sendsAudio
    }

    /// Clients that could not connect.
    package var failedClients: Int { failures.values.reduce(0, +) }
    /// Whether every subscriber got every packet of every window.
    package var isLossless: Bool {
        let windows = steps + (window.map { [$0] } ?? [])
        return !windows.isEmpty && disconnections.isEmpty
            && windows.allSatisfy { $0.packetsLost == 0 && $0.subscribersSilent == 0 }
    }
}
