import Base
internal import Foundation
package import Impairment
internal import NIOSSL
internal import SRTP
package import Wire

/// The configuration of a load run.
package struct LoadConfiguration: Sendable {
    /// Subscribers join in steps until the goals are missed. Each step is measured.
    package struct Ramp: Sendable, Equatable {
        /// Subscribers that join in one step.
        package var step: Int
        /// The highest permitted packet loss in percent.
        package var lossPercentMax: Double
        /// The highest permitted p99 of the forwarding latency.
        package var p99MillisecondsMax: Double

        package init(step: Int, lossPercentMax: Double = 0.1, p99MillisecondsMax: Double = 50) {
            self.step = step
            self.lossPercentMax = lossPercentMax
            self.p99MillisecondsMax = p99MillisecondsMax
        }
    }

    /// The signaling protocol.
    package enum Signaling: String, Sendable, CaseIterable {
        /// WHIP and WHEP: the client offers, with a transport for each publisher that it watches.
        case whip
        /// Sora's signaling: the server offers, and a member sends and receives over one transport.
        case sora
    }

    package var signaling = Signaling.whip
    /// The path of Sora's signaling under `url`.
    package var signalingPath = "/signaling"
    /// The server, optionally with a prefix of all paths.
    package var url = "http://127.0.0.1:8080"
    /// Other servers of a cluster: a client whose session ends joins again there, and where `url` is, one after the other
    /// until it is back. Over Sora's signaling only, whose WebSocket tells of the end.
    package var rejoinURLs: [String] = []
    package var channel = "load"
    /// The number of channels, between which the publishers are divided. Several channels have a number after the name.
    package var channels = 1
    /// Paths under `url`. `{channel}` stands for the channel, `{publisher}` for the publisher's number from 1 and
    /// `{participant}` for the publisher's identifier on the server.
    package var publishPath = "/whip/{channel}"
    package var watchPath = "/whep/{channel}"
    /// The path to one of several publishers of a channel, used if the server names its publishers.
    package var watchParticipantPath = "/whep/{channel}/{participant}"
    /// Sent as Bearer token; over Sora's signaling as `access_token` of the metadata.
    package var token: String?

    package var publishers = 1
    package var subscribers = 1
    /// Members of each channel's conference, in which each publishes and watches all others. `publishers` and
    /// `subscribers` are ignored then.
    package var conferenceMembers: Int?
    /// 0: no video.
    package var videoBitsPerSecond = 1_500_000
    package var framesPerSecond = 30
    package var sendsAudio = false
    /// Whether publishers send three layers, each with half the bit rate of the one above. Over WHIP only.
    package var sendsSimulcast = false
    /// The link from the server to each subscriber, and the one back. With either, each subscriber is reported.
    package var viewerLink: LinkConditions?
    package var viewerUplink: LinkConditions?
    /// The seed of the links' random decisions.
    package var linkSeed: UInt64 = 1
    /// The length of a measured window, which starts when all clients are connected; with a ramp, the window of each
    /// step. It is longer while clients are on their way back.
    package var durationSeconds = 30.0
    /// Clients that join per second.
    package var joinRate = 20.0
    package var ramp: Ramp?
    /// The server's process on this machine, to measure its CPU time and memory.
    package var serverPID: Int?
    /// The server's Prometheus page, to measure its CPU time and memory, and for Nagare the packets that it sent.
    package var metricsURL: String?

    /// The file of certificates that are trusted for URLs of https, PEM; `nil` for the system's.
    package var certificateAuthorityPath: String?

    /// The SRTP profiles that the clients offer in DTLS, in order of preference.
    package var srtpProfiles: [SRTPProfile] = [.aeadAES128GCM, .aeadAES256GCM, .aes128CMHMACSHA1]
    /// The name of the SRTP backend; `nil` for the fastest available.
    package var srtpBackend: String?
    /// The number of event loops; `nil` for as many as the clients' sockets need.
    package var loops: Int?

    package static let clientsMax = 20_000
    package static let loopsMax = 64

    package init() {}

    /// Of the clients' connections to URLs of https.
    var tls: TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let certificateAuthorityPath { configuration.trustRoots = .file(certificateAuthorityPath) }
        return configuration
    }

    /// - Throws: ``LoadError/usage(_:)`` with the first invalid setting.
    package func validate() throws(LoadError) {
        func require(_ condition: Bool, _ message: String) throws(LoadError) {
            guard condition else { throw .usage(message) }
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
            try require(
                conferenceMembers == nil,
                "A conference has no subscribers to ramp; leave out --ramp or --conference."
            )
        }
        try require(
            !sendsSimulcast || signaling == .whip,
            "Over Sora's signaling the server decides about simulcast: leave out --simulcast."
        )
        try require(!sendsSimulcast || videoBitsPerSecond > 0, "Simulcast needs video: leave out --simulcast.")
        try require(
            !shapesViewers || conferenceMembers == nil,
            "The members of a conference have no viewer links: leave out --viewer-link or --conference."
        )
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
        for server in [url] + rejoinURLs {
            try require(Self.isWeb(server), "\(server) is not a URL of the form http://HOST:PORT.")
        }
        try require(
            rejoinURLs.isEmpty || signaling == .sora,
            "Clients join again over Sora's signaling only: add --signaling sora, or leave out --rejoin."
        )
        try require(
            metricsURL.map(Self.isWeb) ?? true,
            "\(metricsURL ?? "") is not a URL of the form http://HOST:PORT/metrics."
        )
        if let path = certificateAuthorityPath {
            try require(
                (try? NIOSSLCertificate.fromPEMFile(path))?.isEmpty == false,
                "\(path) of --ca has no certificates in PEM."
            )
        }
        // Several channels have a number behind the name.
        let nameMax = signaling == .sora ? 255 - (channels > 1 ? "-\(channels)".utf8.count : 0) : 256
        try require(
            channel.utf8.count <= nameMax && ![".", ".."].contains(channel) && !channel.allSatisfy(\.isWhitespace),
            "The channel is a name of 1 to \(nameMax) bytes, and is not blank, . or .."
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

// MARK: - Roles

extension LoadConfiguration {
    package var publisherCount: Int { conferenceMembers.map { $0 * channels } ?? publishers }
    /// In a conference each watched member counts.
    package var subscriberCount: Int { conferenceMembers.map { $0 * ($0 - 1) * channels } ?? subscribers }
    /// Subscribers that are clients of their own. Over Sora's signaling the members of a conference are publishers with
    /// one transport.
    var joiningSubscribers: Int { signaling == .sora && conferenceMembers != nil ? 0 : subscriberCount }
    /// Whether subscribers receive through links of their own.
    var shapesViewers: Bool { viewerLink != nil || viewerUplink != nil }
    var clientCount: Int { publisherCount + joiningSubscribers }

    /// How many of ``clientCount`` are connected. The members of a conference over Sora signaling watch each other on one
    /// connection each, so the report's subscribers are no clients there.
    func connectedClients(_ report: LoadReport) -> Int {
        report.publishersConnected + (joiningSubscribers == 0 ? 0 : report.subscribersConnected)
    }

    var loopCount: Int { max(loops ?? 1, (clientCount + LoadLoop.clientsMax - 1) / LoadLoop.clientsMax) }

    /// The publisher that a subscriber watches. Both numbers start at 0.
    func publisher(watchedBy subscriber: Int) -> Int {
        guard let members = conferenceMembers else { return publishers > 0 ? subscriber % publishers : 0 }
        let conference = subscriber / (members * (members - 1))
        let (watcher, other) = (subscriber % (members * (members - 1))).quotientAndRemainder(dividingBy: members - 1)
        // All members except itself.
        return conference * members + (other < watcher ? other : other + 1)
    }

    /// The channel of a publisher, whose number starts at 0.
    func channel(ofPublisher publisher: Int) -> String {
        guard channels > 1 else { return channel }
        let number = conferenceMembers.map { publisher / $0 } ?? publisher % channels
        return "\(channel)-\(number + 1)"
    }

    /// Whether a channel has several publishers.
    var sharesChannels: Bool { publisherCount > channels }
}

extension SRTPProfile {
    /// The profile's name on the command line and in the report.
    package var loadName: String {
        switch self {
        case .aeadAES128GCM: "gcm"
        case .aeadAES256GCM: "gcm256"
        case .aes128CMHMACSHA1: "cm"
        }
    }
}

/// Why a run, or one client of it, failed, as a sentence for the user.
package enum LoadError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The configuration is invalid.
    case usage(String)
    /// The machine or the server refused, or did not answer.
    case failed(String)

    package var message: String {
        switch self {
        case .usage(let message), .failed(let message): message
        }
    }
    package var description: String { message }
}
