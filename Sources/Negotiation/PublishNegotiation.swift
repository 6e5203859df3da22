public import MediaTypes
public import Wire

/// What came of a publisher's offer.
public struct PublishNegotiation: Hashable, Sendable {
    /// The SDP answer, every live section `recvonly`.
    public let answer: String
    public let remote: RemoteTransport
    /// One for each live section, in the order of the offer.
    public let receive: [ReceiveTrackParameters]
    /// Those of the offer that can be used: UDP with an address.
    public let remoteCandidates: [TransportAddress]
}

/// Answers an offer to publish (RFC 9725 §4.2): at most one audio and one video section, each sending.
///
/// The answer accepts every format, extension and simulcast layer that the server can forward, in the order of the
/// offer. A data channel section is answered with port 0: pages add one out of habit, and nothing is lost with it.
///
/// Deviation: RFC 9725 §4.4.2 has all tracks in one MediaStream. An audio and a video section of different MediaStreams, or
/// without `a=msid`, are accepted as one: pages that call `addTransceiver(track)` without a stream and applications on Pion
/// send such offers, and viewers get both tracks as one stream either way.
///
/// - Parameters:
///   - local: What the server's side of the transport is.
///   - sessionID: For the answer's `o=` line.
///   - videoBitsPerSecondMax: Announced to the peer as what its video may take; `nil` to say nothing. Browsers take it
///     for what they are to reach, above their own default too.
/// - Throws: `NegotiationError`; then nothing is accepted.
public func negotiatePublish(
    offer: String,
    local: LocalTransport,
    sessionID: UInt64,
    videoBitsPerSecondMax: Int? = nil
) throws(NegotiationError) -> PublishNegotiation {
    let remote = try RemoteDescription(parsing: offer, type: .offer, layerDirection: .send)
    var receive: [ReceiveTrackParameters] = []
    var answers: [LocalSection] = []
    for section in remote.live {
        guard section.direction.sends, let kind = section.kind else {
            throw .malformed(
                "The \(section.label) is \(section.direction.rawValue); to publish, offer it sendonly or sendrecv, "
                    + "and leave out m-lines that send nothing."
            )
        }
        let formats = section.negotiated(flow: .fromPeer, usable: HeaderExtension.published(kind))
        try remote.checkCodecs(section, formats)
        var answer = section.answerSection(direction: .recvonly, formats: formats, flow: .fromPeer)
        answer.layers = try section.acceptedLayers(formats)
        if kind == .video, let videoBitsPerSecondMax {
            answer.bandwidths = LocalSection.bandwidths(bitsPerSecond: videoBitsPerSecondMax)
        }
        answers.append(answer)
        receive.append(
            ReceiveTrackParameters(
                mid: try RemoteSection.localMID(section.mid),
                kind: kind,
                codecs: formats.codecs,
                extensions: formats.extensions,
                rids: answer.layers.map(\.attribute.rid),
                ssrcs: section.ssrcs,
                rtxSSRCs: section.rtxSSRCs
            )
        )
    }
    return PublishNegotiation(
        answer: remote.answer(local: local, sessionID: sessionID, live: answers),
        remote: remote.remoteTransport,
        receive: receive,
        remoteCandidates: remote.candidates
    )
}

extension RemoteSection {
    /// The offered layers, turned round; a layer that only uses formats which were not accepted is left out
    /// (RFC 8851 §6.3).
    func acceptedLayers(_ formats: NegotiatedFormats) throws(NegotiationError) -> [RemoteLayer] {
        guard !layers.isEmpty else { return [] }
        guard formats.extensions[.rtpStreamID] != nil, formats.extensions[.mid] != nil else {
            throw .unsupported(
                "The \(label) offers simulcast without the header extensions \(HeaderExtension.mid.uri) and "
                    + "\(HeaderExtension.rtpStreamID.uri); layers cannot be told apart without them: offer both."
            )
        }
        let accepted = Set(formats.codecs.map(\.payloadType))
        return layers.compactMap { layer in
            var layer = layer
            let offered = layer.attribute.payloadTypes
            layer.attribute.payloadTypes = offered.filter { accepted.contains($0) }
            guard offered.isEmpty || !layer.attribute.payloadTypes.isEmpty else { return nil }
            layer.attribute.direction = layer.attribute.direction.reversed
            layer.isPaused = false
            return layer
        }
    }
}
