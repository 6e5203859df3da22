import Base
public import MediaTypes
public import Wire

/// An offer to watch (WHEP, draft-ietf-wish-whep §4.2): at most one audio and one video section, each receiving.
///
/// The answer accepts every format that the server can forward, because the publisher and its formats may change later. It
/// also accepts data channels.
public struct WatchOffer: Sendable {
    private let offer: ParsedOffer

    /// - Throws: `NegotiationError` when the offer is malformed, or one of its sections cannot be accepted.
    public init(parsing text: String) throws(NegotiationError) {
        offer = try ParsedOffer(parsing: text, flow: .toPeer)
    }

    /// The kinds of media that the client receives.
    public var kinds: [MediaKind] { offer.kinds }

    /// - Parameters:
    ///   - local: The server's side of the transport.
    ///   - streamID: The MediaStream that both tracks belong to at the viewer. Characters that `a=msid` cannot carry are
    ///     replaced by `_`, and at most 64 are used (RFC 8830 §2).
    ///   - sessionID: The session identifier of the answer's `o=` line.
    ///   - acceptsData: Whether to accept data channels.
    ///   - generator: Chooses SSRCs and the canonical name.
    public func answer(
        local: LocalTransport,
        streamID: String,
        sessionID: UInt64,
        acceptsData: Bool = true,
        using generator: inout some RandomNumberGenerator
    ) -> AnsweredOffer {
        let stream = mediaStreamIdentifier(streamID)
        let cname = makeCanonicalName(using: &generator)
        var sources = SSRCChooser(taken: Set(offer.description.live.flatMap(\.allSSRCs)))
        var send: [SendTrackParameters] = []
        var answers: [LocalSection] = []
        for section in offer.sections {
            let formats = section.formats
            let usesRTX = formats.codecs.contains { $0.rtxPayloadType != nil }
            let track = SendTrackParameters(
                mid: section.mid,
                kind: section.kind,
                codecs: formats.codecs,
                extensions: formats.extensions,
                ssrc: sources.next(using: &generator),
                rtxSSRC: usesRTX ? sources.next(using: &generator) : nil,
                cname: cname
            )
            var answer = section.remote.answerSection(direction: .sendonly, formats: formats, flow: .toPeer)
            answer.msid = (stream, section.kind.rawValue)
            answer.cname = cname
            answer.streams = [LocalSection.Stream(ssrc: track.ssrc, rtxSSRC: track.rtxSSRC)]
            answers.append(answer)
            send.append(track)
        }
        return AnsweredOffer(
            answer: offer.description.answer(
                local: local,
                sessionID: sessionID,
                live: answers,
                acceptsData: acceptsData
            ),
            remote: offer.description.remoteTransport,
            send: send,
            data: acceptsData ? offer.description.data?.parameters : nil,
            remoteCandidates: offer.description.candidates
        )
    }
}

/// The name as a MediaStream identifier of `a=msid`: 1…64 token characters.
func mediaStreamIdentifier(_ name: String) -> String {
    let bytes = name.utf8.prefix(64).map { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "+"): byte
        default: UInt8(ascii: "_")
        }
    }
    return bytes.isEmpty ? "-" : String(decoding: bytes, as: UTF8.self)
}

/// A canonical name of 96 random bits (RFC 7022 §4.2), without characters that have a meaning in SDP or URLs.
func makeCanonicalName(using generator: inout some RandomNumberGenerator) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    let bytes = (0..<16).map { _ in alphabet[Int(UInt8.random(in: 0..<64, using: &generator))] }
    return String(decoding: bytes, as: UTF8.self)
}

/// Chooses SSRCs that are neither 0 nor taken.
struct SSRCChooser {
    private var taken: Set<SSRC>

    init(taken: Set<SSRC> = []) { self.taken = taken }

    mutating func next(using generator: inout some RandomNumberGenerator) -> SSRC {
        var candidate = SSRC(rawValue: UInt32.random(in: 1...UInt32.max, using: &generator))
        // Terminates with any generator: far fewer than 2^32 are taken.
        while !taken.insert(candidate).inserted { candidate = SSRC(rawValue: max(1, candidate.rawValue &+ 1)) }
        return candidate
    }
}
