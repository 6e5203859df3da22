/// What a load run does.
package struct LoadConfiguration: Sendable {
    /// Subscribers that join in steps, each of which is measured.
    package struct Ramp: Sendable, Equatable {
        /// Subscribers that join in one step.
        package var subscribers: Int
        /// How long a step is measured once all of its subscribers are connected.
        package var seconds: Double
        package init(subscribers: Int, seconds: Double) {
            self.subscribers = subscribers
            self.seconds = seconds
        }
    }

    /// The server: `http://127.0.0.1:8080`, or with a path that all of its endpoints begin with.
    package var url = "http://127.0.0.1:8080"
    package var channel = "load"
    /// Paths under `url`. `{channel}` stands for the channel, `{publisher}` for the publisher's number from 1 and
    /// `{participant}` for the publisher's name as the server gave it.
    package var publishPath = "/whip/{channel}"
    package var watchPath = "/whep/{channel}"
    /// How a subscriber names one of several publishers; used when the server named them.
    package var watchParticipantPath = "/whep/{channel}/{participant}"
    /// Presented as Bearer token.
    package var token: String?

    package var publishers = 1
    package var subscribers = 1
    /// 0: no video.
    package var videoBitsPerSecond = 1_500_000
    package var framesPerSecond = 30
    package var sendsAudio = false
    /// The length of the measured window, which begins when everybody is connected.
    package var durationSeconds = 30.0
    /// Clients that join per second.
    package var joinRate = 20.0
    package var ramp: Ramp?
    /// The server's process on this machine, to measure its CPU time.
    package var serverPID: Int?

    package static let clientsMax = 20_000

    package init() {}

    /// Throws what is wrong, in one sentence.
    package func validate() throws(LoadError) {
        func require(_ condition: Bool, _ sentence: String) throws(LoadError) {
            guard condition else { throw .usage(sentence) }
        }
        try require(publishers >= 0 && subscribers >= 0, "The number of clients cannot be negative.")
        try require(publishers + subscribers > 0, "Give at least one publisher or subscriber.")
        try require(
            publishers <= Self.clientsMax && subscribers <= Self.clientsMax,
            "Give at most \(Self.clientsMax) clients."
        )
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
            try require(
                ramp.subscribers >= 1 && ramp.seconds >= 1 && ramp.seconds <= 1_000_000,
                "A ramp step adds at least one subscriber and lasts at least a second."
            )
        }
        let isWeb = url.hasPrefix("http://") || url.hasPrefix("https://")
        try require(isWeb && url.utf8.count <= 2_048, "\(url) is not a URL of the form http://HOST:PORT.")
        try require(!channel.isEmpty && channel.utf8.count <= 256, "The channel is a name of 1 to 256 bytes.")
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
