public import MediaTypes
public import Wire

/// An offer to publish (RFC 9725 §4.2): at most one audio and one video section, each sending.
///
/// The answer accepts every format, extension and simulcast layer that the server can forward, in the order of the
/// offer, and data channels.
///
/// Deviation: RFC 9725 §4.4.2 requires all tracks in one MediaStream. The server accepts an audio and a video section of
/// different MediaStreams, or without `a=msid`: applications that call `addTransceiver(track)` without a stream and
/// applications on Pion send such offers, and viewers get both tracks as one stream.
public struct PublishOffer: Sendable {
    private let offer: ParsedOffer
    /// The accepted simulcast layers of each section.
    private let layers: [[RemoteLayer]]

    /// - Throws: `NegotiationError` when the offer is malformed, or one of its sections cannot be accepted.
    public init(parsing text: String) throws(NegotiationError) {
        offer = try ParsedOffer(parsing: text, flow: .fromPeer)
        var layers: [[RemoteLayer]] = []
        for section in offer.sections { layers.append(try section.remote.acceptedLayers(section.formats)) }
        self.layers = layers
    }

    /// The kinds of media that the client sends.
    public var kinds: [MediaKind] { offer.kinds }

    /// - Parameters:
    ///   - local: The server's side of the transport.
    ///   - sessionID: The session identifier of the answer's `o=` line.
    ///   - acceptsData: Whether to accept data channels.
    ///   - videoBitsPerSecondMax: The `b=` limit of video; `nil` for none. Browsers also raise their target to this limit.
    public func answer(
        local: LocalTransport,
        sessionID: UInt64,
        acceptsData: Bool = true,
        videoBitsPerSecondMax: Int? = nil
    ) -> AnsweredOffer {
        var receive: [ReceiveTrackParameters] = []
        var answers: [LocalSection] = []
        for (section, layers) in zip(offer.sections, layers) {
            let formats = section.formats
            var answer = section.remote.answerSection(direction: .recvonly, formats: formats, flow: .fromPeer)
            answer.layers = layers
            if section.kind == .video, let videoBitsPerSecondMax {
                answer.bandwidths = LocalSection.bandwidths(bitsPerSecond: videoBitsPerSecondMax)
            }
            answers.append(answer)
            receive.append(
                ReceiveTrackParameters(
                    mid: section.mid,
                    kind: section.kind,
                    codecs: formats.codecs,
                    extensions: formats.extensions,
                    rids: layers.map(\.attribute.rid),
                    ssrcs: section.remote.ssrcs,
                    rtxSSRCs: section.remote.rtxSSRCs
                )
            )
        }
        return AnsweredOffer(
            answer: offer.description.answer(
                local: local,
                sessionID: sessionID,
                live: answers,
                acceptsData: acceptsData
            ),
            remote: offer.description.remoteTransport,
            receive: receive,
            data: acceptsData ? offer.description.data?.parameters : nil,
            remoteCandidates: offer.description.candidates
        )
    }
}

extension RemoteSection {
    /// The layers of the answer. A layer is omitted when none of its formats was accepted (RFC 8851 §6.3).
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
