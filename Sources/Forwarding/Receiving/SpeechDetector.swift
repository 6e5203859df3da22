package import Wire

/// Tells speech from silence by the audio levels that a sender puts on its packets (RFC 6464).
///
/// Speech begins soon, so that nobody's first word is missed, and ends late, so that pauses between words are none. A
/// sender that says whatever it likes makes an event in ``hold`` at most.
package struct SpeechDetector: Sendable {
    /// In -dBov, 0 the loudest: at this level or louder speech begins. Microphones with noise suppression are at 60 to
    /// 127 in silence, and at 15 to 45 with a voice.
    static let beginLevel: UInt8 = 45
    /// At this level or louder speech goes on.
    static let goOnLevel: UInt8 = 55
    /// What is loud for less than this is a click or a knock.
    static let onset = Interval.milliseconds(60)
    /// A gap in which no packet is loud, or none comes, and what follows is a beginning again.
    static let gapMax = Interval.milliseconds(200)
    /// Speech ends after this time without a loud packet.
    static let hold = Interval.milliseconds(900)

    package private(set) var isSpeaking = false
    private var loudSince: Instant?
    private var lastLoudAt: Instant?

    package init() {}

    /// Takes the level of one packet.
    /// - Parameter value: the extension's first byte: the level in its low seven bits. The sender's own opinion of
    ///   whether it is voice, in the top one, is not asked: many senders set it always.
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

    /// Notices silence; to be called a few times a second, because a sender may fall silent by sending nothing.
    /// - Returns: `false` when speech ended, else `nil`.
    package mutating func timePassed(at now: Instant) -> Bool? {
        guard let lastLoudAt, now - lastLoudAt > Self.gapMax else { return nil }
        loudSince = nil
        guard isSpeaking, now - lastLoudAt >= Self.hold else { return nil }
        isSpeaking = false
        return false
    }
}
