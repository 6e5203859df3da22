public import MediaTypes
public import Wire

/// A WHIP or WHEP offer, parsed and checked: at most one audio and one video section, and media in one direction only.
struct ParsedOffer {
    /// A section in use.
    struct Section {
        let remote: RemoteSection
        let kind: MediaKind
        let mid: MID
        let formats: NegotiatedFormats
    }

    let description: RemoteDescription
    let sections: [Section]

    init(parsing text: String, flow: MediaFlow) throws(NegotiationError) {
        let isPublishing = flow == .fromPeer
        description = try RemoteDescription(
            parsing: text,
            type: .offer,
            layerDirection: isPublishing ? .send : .recv
        )
        var sections: [Section] = []
        for section in description.live {
            guard let kind = section.kind, isPublishing ? section.direction.sends : section.direction.receives else {
                let (action, direction, verb) =
                    isPublishing ? ("publish", "sendonly", "send") : ("watch", "recvonly", "receive")
                throw .malformed(
                    "The \(section.label) is \(section.direction.rawValue); to \(action), offer it \(direction) or "
                        + "sendrecv, and leave out m-lines that \(verb) nothing."
                )
            }
            let usable = isPublishing ? HeaderExtension.published(kind) : HeaderExtension.watched(kind)
            let formats = section.negotiated(flow: flow, usable: usable)
            try Self.checkCodecs(section, formats)
            sections.append(Section(remote: section, kind: kind, mid: try section.localMID, formats: formats))
        }
        self.sections = sections
    }

    /// The kinds of media, one for each section.
    var kinds: [MediaKind] { sections.map(\.kind) }

    /// Refuses the offer when one section has no forwardable codec: RFC 9725 §4.2 forbids partial success.
    static func checkCodecs(_ section: RemoteSection, _ formats: NegotiatedFormats) throws(NegotiationError) {
        guard formats.codecs.allSatisfy({ $0.name == .red }) else { return }
        let names =
            section.kind == .audio
            ? "Opus (opus/48000/2)" : "VP8, VP9, AV1, H264 (packetization-mode 0 or 1) and H265"
        throw .unsupported(
            "The \(section.label) offers no codec that the server forwards; add one of \(names), "
                + "or leave the section out."
        )
    }
}

/// The answer to a ``PublishOffer`` or a ``WatchOffer``, and the parameters of the client's peer.
public struct AnsweredOffer: Hashable, Sendable {
    /// The SDP answer.
    public let answer: String
    public let remote: RemoteTransport
    /// A publisher's tracks, one for each live section in the order of the offer; empty for a viewer.
    public var receive: [ReceiveTrackParameters] = []
    /// A viewer's slots, one for each live section in the order of the offer; empty for a publisher.
    public var send: [SendTrackParameters] = []
    /// `nil` without data channels.
    public var data: DataTransportParameters?
    /// The usable candidates of the offer: UDP with an address.
    public let remoteCandidates: [TransportAddress]

    /// The MIDs of the live sections, in the order of the offer.
    public var mids: [MID] { receive.map(\.mid) + send.map(\.mid) }
    /// The kinds of the live sections, in the order of the offer.
    public var kinds: [MediaKind] { receive.map(\.kind) + send.map(\.kind) }
}
