internal import Foundation
internal import SRTP
package import Wire

/// What a load run does.
package struct LoadConfiguration: Sendable {
    /// Subscribers that join in steps, each of which is measured, until the goals are missed.
    package struct Ramp: Sendable, Equatable {
        /// Subscribers that join in one step.
        package var step: Int
        /// The share of the packets that may be lost, in percent.
        package var lossPercentMax: Double
        /// The forwarding latency that 99 % of the packets must not exceed.
        package var p99MillisecondsMax: Double

        package init(step: Int, lossPercentMax: Double = 0.1, p99MillisecondsMax: Double = 50) {
            self.step = step
            self.lossPercentMax = lossPercentMax
            self.p99MillisecondsMax = p99MillisecondsMax
        }
    }

    /// How the server is spoken to.
    package enum Signaling: String, Sendable, CaseIterable {
        /// WHIP and WHEP: the client offers, over a transport for each track that it watches.
        case whip
        /// Sora's: the server offers, and a member sends and receives over one transport.
        case sora
    }

    package var signaling = Signaling.whip
    /// Where the WebSocket of Sora's signaling is, under `url`.
    package var signalingPath = "/signaling"
    /// The server: `http://127.0.0.1:8080`, or with a path that all of its endpoints begin with.
    package var url = "http://127.0.0.1:8080"
    package var channel = "load"
    /// Channels that the publishers are spread over; with several, each has its number behind its name.
    package var channels = 1
    /// Paths under `url`. `{channel}` stands for the channel, `{publisher}` for the publisher's number from 1 and
    /// `{participant}` for the publisher's name as the server gave it.
    package var publishPath = "/whip/{channel}"
    package var watchPath = "/whep/{channel}"
    /// How a subscriber names one of several publishers of a channel; used when the server named them.
    package var watchParticipantPath = "/whep/{channel}/{participant}"
    /// Presented as Bearer token, and to Sora's signaling as `access_token` of the metadata.
    package var token: String?

    package var publishers = 1
    package var subscribers = 1
    /// Members of each channel's conference, in which each publishes and watches all others; `publishers` and
    /// `subscribers` count for nothing then.
    package var conferenceMembers: Int?
    /// 0: no video.
    package var videoBitsPerSecond = 1_500_000
    package var framesPerSecond = 30
    package var sendsAudio = false
    /// The length of a measured window, which begins when everybody is connected; with a ramp, of each step's.
    package var durationSeconds = 30.0
    /// Clients that join per second.
    package var joinRate = 20.0
    package var ramp: Ramp?
    /// The server's process on this machine, to measure its CPU time and memory.
    package var serverPID: Int?
    /// The server's Prometheus page, to measure its CPU time, its memory and, of Nagare, what it sent.
    package var metricsURL: String?

    /// What the clients offer in DTLS, best first.
    package var srtpProfiles: [SRTPProfile] = [.aeadAES128GCM, .aeadAES256GCM, .aes128CMHMACSHA1]
    /// What encrypts and decrypts, by its name; `nil`: the fastest that there is.
    package var srtpBackend: String?
    /// Threads that the clients are spread over; `nil`: as many as their sockets need.
    package var loops: Int?

    package static let clientsMax = 20_000
    package static let loopsMax = 64

    package init() {}

    /// Throws what is wrong, in one sentence.
    package func validate() throws(LoadError) {
        func require(_ condition: Bool, _ sentence: String) throws(LoadError) {
            guard condition else { throw .usage(sentence) }
        }
        try validateClients()
        try require(videoBitsPerSecond >= 0, "The video bitrate cannot be negative.")
        try require(videoBitsPerSecond > 0 || sendsAudio, "Without video there must be audio: add --audio.")
        try require(videoBitsPerSecond <= 50_000_000, "The video bitrate is at most 50000 kbit/s.")
        try require((1...240).contains(framesPerSecond), "The frame rate is 1 to 240 frames per second.")
        try require(
            durationSeconds >= 1 && durationSeconds <= 1_000_000,
            "The duration is 1 to 1000000 seconds."
        )
        try require(joinRate >= 0.01 && joinRate <= 10_000, "The join rate is 0.01 to 10000 clients per second.")
        if let ramp {
            try require(ramp.step >= 1, "A step of the ramp adds at least one subscriber.")
            try require(
                ramp.lossPercentMax >= 0 && ramp.lossPercentMax <= 100,
                "The loss that a ramp tolerates is 0 to 100 percent."
            )
            try require(
                ramp.p99MillisecondsMax > 0 && ramp.p99MillisecondsMax <= 100_000,
                "The latency that a ramp tolerates is more than 0 and at most 100000 ms."
            )
            try require(conferenceMembers == nil, "A ramp adds subscribers, which a conference has none of.")
        }
        try require(!srtpProfiles.isEmpty, "Offer at least one SRTP profile.")
        let backends = SRTPBackend.available.map(\.rawValue)
        try require(
            srtpBackend.map { backends.contains($0) } ?? true,
            "There is no SRTP backend \(srtpBackend ?? "") on this machine; there is \(backends.joined(separator: ", "))."
        )
        try require(
            loops.map { (1...Self.loopsMax).contains($0) } ?? true,
            "The clients run on 1 to \(Self.loopsMax) loops."
        )
        try require(Self.isWeb(url), "\(url) is not a URL of the form http://HOST:PORT.")
        try require(
            metricsURL.map(Self.isWeb) ?? true,
            "\(metricsURL ?? "") is not a URL of the form http://HOST:PORT/metrics."
        )
        // Several channels have a number behind the name.
        let nameMax = signaling == .sora ? 255 - (channels > 1 ? "-\(channels)".utf8.count : 0) : 256
        try require(
            !channel.isEmpty && channel.utf8.count <= nameMax,
            "The channel is a name of 1 to \(nameMax) bytes."
        )
        try require(signaling == .whip || !signalingPath.isEmpty, "The WebSocket needs a path, such as /signaling.")
    }

    private func validateClients() throws(LoadError) {
        guard channels >= 1, channels <= Self.clientsMax else {
            throw .usage("There are 1 to \(Self.clientsMax) channels.")
        }
        if let conferenceMembers {
            guard (2...100).contains(conferenceMembers) else { throw .usage("A conference has 2 to 100 members.") }
        } else {
            guard publishers >= 0, subscribers >= 0 else { throw .usage("The number of clients cannot be negative.") }
            guard publishers <= Self.clientsMax, subscribers <= Self.clientsMax else {
                throw .usage("Give at most \(Self.clientsMax) clients.")
            }
            guard channels == 1 || channels <= publishers else {
                throw .usage("Each of the \(channels) channels needs a publisher.")
            }
        }
        guard publisherCount + subscriberCount > 0 else { throw .usage("Give at least one publisher or subscriber.") }
        guard publisherCount + subscriberCount <= Self.clientsMax else {
            throw .usage("Give at most \(Self.clientsMax) clients.")
        }
    }

    private static func isWeb(_ url: String) -> Bool {
        (url.hasPrefix("http://") || url.hasPrefix("https://")) && url.utf8.count <= 2_048
            && URL(string: url)?.host()?.isEmpty == false
    }
}

// MARK: - Who does what

extension LoadConfiguration {
    package var publisherCount: Int { conferenceMembers.map { $0 * channels } ?? publishers }
    /// In a conference each watched member counts.
    package var subscriberCount: Int { conferenceMembers.map { $0 * ($0 - 1) * channels } ?? subscribers }
    /// Subscribers that join as clients of their own: members of a conference with one transport each are none.
    var joiningSubscribers: Int { signaling == .sora && conferenceMembers != nil ? 0 : subscriberCount }
    var clientCount: Int { publisherCount + joiningSubscribers }
    var loopCount: Int { max(loops ?? 1, (clientCount + LoadLoop.clientsMax - 1) / LoadLoop.clientsMax) }

    /// Which publisher, from 0, a subscriber watches, by its number from 0.
    func publisher(watchedBy subscriber: Int) -> Int {
        guard let members = conferenceMembers else { return publishers > 0 ? subscriber % publishers : 0 }
        let conference = subscriber / (members * (members - 1))
        let (watcher, other) = (subscriber % (members * (members - 1))).quotientAndRemainder(dividingBy: members - 1)
        // Everybody but itself.
        return conference * members + (other < watcher ? other : other + 1)
    }

    /// The name of the channel that a publisher, by its number from 0, publishes to.
    func channel(ofPublisher publisher: Int) -> String {
        guard channels > 1 else { return channel }
        let number = conferenceMembers.map { publisher / $0 } ?? publisher % channels
        return "\(channel)-\(number + 1)"
    }

    /// Whether a channel has publishers that must be told apart.
    var sharesChannels: Bool { publisherCount > channels }
}

extension SRTPProfile {
    /// What the profile is called on the command line and in the report.
    package var loadName: String {
        switch self {
        case .aeadAES128GCM: "gcm"
        case .aeadAES256GCM: "gcm256"
        case .aes128CMHMACSHA1: "cm"
        }
    }
}

/// Why a run, or one client of it, came to nothing: one sentence for the one who started it.
package enum LoadError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was asked for is wrong.
    case usage(String)
    /// The machine or the server refuses it.
    case failed(String)

    package var sentence: String {
        switch self {
        case .usage(let sentence), .failed(let sentence): sentence
        }
    }
    package var description: String { sentence }
}
