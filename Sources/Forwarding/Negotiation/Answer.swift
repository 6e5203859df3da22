import MediaTypes
internal import Wire

extension RemoteDescription {
    /// The local answer: the same m-lines in the same order (RFC 3264 §6).
    ///
    /// - Parameters:
    ///   - role: The DTLS role; `nil` for the one that the offer leaves.
    ///   - version: Of the `o=` line, one more than of the answer before.
    ///   - live: The answer to each section of `self.live`, in order; `nil` to reject it.
    ///   - acceptsData: Whether to accept data channels.
    func answer(
        local: LocalTransport,
        role: DTLSRole? = nil,
        sessionID: UInt64,
        version: UInt64 = 1,
        live answered: [LocalSection?],
        acceptsData: Bool
    ) -> String {
        precondition(answered.count == live.count, "each live section is answered once")
        var rest = answered[...]
        let accepted = Set(answered.compactMap { $0?.mid })
        return LocalDescription(
            sessionID: sessionID,
            version: version,
            lines: LocalTransportLines(
                transport: local,
                setup: (role ?? localRole) == .client ? .active : .passive,
                isLite: true
            ),
            bundle: bundle?.filter { accepted.contains($0) || (acceptsData && $0 == data?.mid) },
            allowsMixedExtensions: session.attributes.has("extmap-allow-mixed"),
            sections: sections.enumerated().map { index, section in
                if acceptsData, let data, data.index == index {
                    return .data(
                        LocalDataSection(
                            mid: data.mid,
                            port: data.parameters.port,
                            protocolName: section.media.protocolName
                        )
                    )
                }
                guard section.kind != nil, !section.isRejected, let local = rest.popFirst() ?? nil else {
                    return .rejected(section.media, mid: section.mid)
                }
                return .live(local)
            }
        ).serialized()
    }
}

extension RemoteSection {
    /// The section's MID, or `0` when the section has none.
    var localMID: MID {
        get throws(NegotiationError) {
            guard let mid = mid ?? MID("0") else { throw .malformed("The section has no a=mid line.") }
            return mid
        }
    }

    /// The answer to this section, with everything that depends on the section alone.
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
            listsFeedbackOnce: listsFeedbackOnce,
            allowsMixedExtensions: attributes.has("extmap-allow-mixed"),
            usesReducedSizeRTCP: attributes.has("rtcp-rsize")
        )
    }
}

extension MediaDirection {
    /// The direction as the other side writes it.
    var reversed: Self {
        switch self {
        case .sendonly: .recvonly
        case .recvonly: .sendonly
        case .sendrecv, .inactive: self
        }
    }
}
