import MediaTypes
internal import Wire

extension RemoteDescription {
    /// Our answer: the same m-lines in the same order.
    ///
    /// - Parameter live: One for each of `self.live`, in order.
    func answer(local: LocalTransport, sessionID: UInt64, live answered: [LocalSection]) -> String {
        precondition(answered.count == live.count, "each live section is answered once")
        var rest = answered[...]
        return LocalDescription(
            sessionID: sessionID,
            lines: LocalTransportLines(
                transport: local,
                setup: localRole == .client ? .active : .passive,
                isLite: true
            ),
            bundle: bundle,
            allowsMixedExtensions: session.attributes.has("extmap-allow-mixed"),
            sections: sections.map { section in
                guard section.kind != nil, !section.isRejected, let local = rest.popFirst() else {
                    return .rejected(section.media, mid: section.mid)
                }
                return .live(local)
            }
        ).serialized()
    }

    /// Refuses all when one section has nothing in common with us: RFC 9725 §4.2 wants no partial success.
    func checkCodecs(_ section: RemoteSection, _ formats: NegotiatedFormats) throws(NegotiationError) {
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

extension RemoteSection {
    /// What tracks call the section when its author did not name it.
    static func localMID(_ mid: MID?) throws(NegotiationError) -> MID {
        guard let mid = mid ?? MID("0") else { throw .malformed("The section has no a=mid line.") }
        return mid
    }

    /// The answer to this section with all that depends on the section alone.
    func answerSection(
        direction: MediaDirection,
        formats: NegotiatedFormats,
        flow: MediaFlow
    ) -> LocalSection {
        var answered = formats.codecs
        for index in answered.indices { answered[index].format = answerFormat(for: answered[index], flow: flow) }
        return LocalSection(
            kind: kind ?? .audio,
            mid: mid,
            protocolName: media.protocolName,
            direction: direction,
            codecs: answered,
            extensionLines: formats.extensionLines.map {
                var line = $0
                line.direction = $0.direction?.reversed
                return line
            },
            allowsMixedExtensions: attributes.has("extmap-allow-mixed"),
            usesReducedSizeRTCP: attributes.has("rtcp-rsize")
        )
    }
}

extension MediaDirection {
    /// The same flow seen from the other side.
    var reversed: Self {
        switch self {
        case .sendonly: .recvonly
        case .recvonly: .sendonly
        case .sendrecv, .inactive: self
        }
    }
}
