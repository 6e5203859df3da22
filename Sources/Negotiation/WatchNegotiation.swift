public import MediaTypes
public import Wire

/// What came of a viewer's offer.
public struct WatchNegotiation: Hashable, Sendable {
    /// The SDP answer, every live section `sendonly`.
    public let answer: String
    public let remote: RemoteTransport
    /// One slot for each live section, in the order of the offer.
    public let send: [SendTrackParameters]
    /// Those of the offer that can be used: UDP with an address.
    public let remoteCandidates: [TransportAddress]
}

/// Answers an offer to watch (WHEP, draft-ietf-wish-whep §4.2): at most one audio and one video section,
/// each receiving.
///
/// The answer accepts every format that the server can forward, since what a publisher sends may change later.
///
/// - Parameters:
///   - local: What the server's side of the transport is.
///   - streamID: The MediaStream that both tracks belong to at the viewer. Characters that `a=msid` cannot carry are
///     replaced by `_`, and at most 64 are used (RFC 8830 §2).
///   - sessionID: For the answer's `o=` line.
///   - generator: Chooses SSRCs and the canonical name.
/// - Throws: `NegotiationError`; then nothing is accepted.
public func negotiateWatch(
    offer: String,
    local: LocalTransport,
    streamID: String,
    sessionID: UInt64,
    using generator: inout some RandomNumberGenerator
) throws(NegotiationError) -> WatchNegotiation {
    let remote = try RemoteDescription(parsing: offer, type: .offer, layerDirection: .recv)
    let stream = mediaStreamIdentifier(streamID)
    let cname = makeCanonicalName(using: &generator)
    var sources = SSRCChooser(taken: Set(remote.live.flatMap(\.allSSRCs)))
    var send: [SendTrackParameters] = []
    var answers: [LocalSection] = []
    for section in remote.live {
        guard section.direction.receives, let kind = section.kind else {
            throw .malformed(
                "The \(section.label) is \(section.direction.rawValue); to watch, offer it recvonly or sendrecv, "
                    + "and leave out m-lines that receive nothing."
            )
        }
        let formats = section.negotiated(flow: .toPeer, usable: HeaderExtension.watched(kind))
        try remote.checkCodecs(section, formats)
        let usesRTX = formats.codecs.contains { $0.rtxPayloadType != nil }
        let track = SendTrackParameters(
            mid: try RemoteSection.localMID(section.mid),
            kind: kind,
            codecs: formats.codecs,
            extensions: formats.extensions,
            ssrc: sources.next(using: &generator),
            rtxSSRC: usesRTX ? sources.next(using: &generator) : nil,
            cname: cname
        )
        var answer = section.answerSection(direction: .sendonly, formats: formats, flow: .toPeer)
        answer.msid = (stream, kind.rawValue)
        answer.cname = cname
        answer.streams = [LocalSection.Stream(ssrc: track.ssrc, rtxSSRC: track.rtxSSRC)]
        answers.append(answer)
        send.append(track)
    }
    return WatchNegotiation(
        answer: remote.answer(local: local, sessionID: sessionID, live: answers),
        remote: remote.remoteTransport,
        send: send,
        remoteCandidates: remote.candidates
    )
}

/// A name as `a=msid` can carry it: 1…64 token characters.
func mediaStreamIdentifier(_ name: String) -> String {
    let bytes = name.utf8.prefix(64).map { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "+"): byte
        default: UInt8(ascii: "_")
        }
    }
    return bytes.isEmpty ? "-" : String(decoding: bytes, as: UTF8.self)
}

/// A canonical name of 96 random bits (RFC 7022 §4.2), without characters that SDP or the web treat specially.
func makeCanonicalName(using generator: inout some RandomNumberGenerator) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    let bytes = (0..<16).map { _ in alphabet[Int(UInt8.random(in: 0..<64, using: &generator))] }
    return String(decoding: bytes, as: UTF8.self)
}

/// Chooses sources that are neither 0 nor in use in the session.
struct SSRCChooser {
    private var taken: Set<SSRC>

    init(taken: Set<SSRC> = []) { self.taken = taken }

    mutating func next(using generator: inout some RandomNumberGenerator) -> SSRC {
        var candidate = SSRC(rawValue: UInt32.random(in: 1...UInt32.max, using: &generator))
        // Counting up ends, whatever the generator gives: far fewer than 2^32 are taken.
        while !taken.insert(candidate).inserted { candidate = SSRC(rawValue: max(1, candidate.rawValue &+ 1)) }
        return candidate
    }
}
