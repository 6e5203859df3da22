package import Base

/// Detects speech by the audio levels of a sender's packets (RFC 6464).
///
/// The start is detected soon, so that no first word is missed, and the end late, so that pauses between words do not
/// count. A sender with false levels causes one event per ``hold`` at most.
package struct SpeechDetector: Sendable {
    /// In -dBov, where 0 is the loudest: speech starts at this level or louder. Microphones with noise suppression are
    /// at 60 to 127 in silence, and at 15 to 45 with a voice.
    static let beginLevel: UInt8 = 45
    /// Speech continues at this level or louder.
    static let goOnLevel: UInt8 = 55
    /// A shorter loud sound is a click or a knock.
    static let onset = Interval.milliseconds(60)
    /// After a longer gap without a loud packet the onset starts over.
    static let gapMax = Interval.milliseconds(200)
    /// Speech ends after this time without a loud packet.
    static let hold = Interval.milliseconds(900)

    package private(set) var isSpeaking = false
    private var loudSince: Instant?
    private var lastLoudAt: Instant?

    package init() {}

    /// Takes the level of one packet.
    /// - Parameter value: the extension's first byte: the level in its low seven bits. The top bit, the sender's own
    ///   voice activity flag, is ignored: many senders always set it.
    /// - Returns: whether somebody speaks from now on; `nil` when nothing changed.
    package mutating func received(_ value: UInt8, at now: Instant) -> Bool? {
        let level = value & 0x7F
        guard level <= (isSpeaking ? Self.goOnLevel : Self.beginLevel) else { return timePassed(at: now) }
        if let lastLoudAt, now - lastLoudAt > Self.gapMax { loudSince = nil }
        lastLoudAt = now
        guard let loudSince else {
            loudSince = now
            return nil
        }
        guard !isSpeaking, now - loudSince >= Self.onset else { return nil }
        isSpeaking = true
        return true
    }

    /// Detects silence; to be called a few times a second, because a silent sender may send nothing.
    /// - Returns: `false` when speech ended, otherwise `nil`.
    package mutating func timePassed(at now: Instant) -> Bool? {
        guard let lastLoudAt, now - lastLoudAt > Self.gapMax else { return nil }
        loudSince = nil
        guard isSpeaking, now - lastLoudAt >= Self.hold else { return nil }
        isSpeaking = false
        return false
    }
}
