import MediaTypes
import Wire

extension OfferedDescription {
    /// The current SDP. Only m-lines that changed are serialized again.
    mutating func describe() -> String {
        let head = head
        let lines = LocalTransportLines(transport: local, setup: .actpass, isLite: true)
        var text = LocalDescription(
            sessionID: sessionID,
            version: version,
            lines: lines,
            bundle: bundle,
            allowsMixedExtensions: true,
            sections: []
        ).serialized()
        for index in sections.indices {
            if index == dataLine?.index { writeDataLine(lines, to: &text) }
            let isHead = index == head
            if let known = sections[index].text, known.isHead == isHead {
                text += known.value
                continue
            }
            var value = ""
            line(sections[index], isHead: isHead).media(lines, isHead: isHead).write(to: &value)
            sections[index].text = OfferedSection.Text(value: value, isHead: isHead)
            work.described += 1
            text += value
        }
        if dataLine?.index == sections.count { writeDataLine(lines, to: &text) }
        return text
    }

    private func writeDataLine(_ lines: LocalTransportLines, to text: inout String) {
        guard let dataLine else { return }
        LocalDataSection(mid: dataLine.mid).media(lines, isBundleHead: head == sections.endIndex).write(to: &text)
    }

    private func line(_ section: OfferedSection, isHead: Bool) -> LocalDescription.Section {
        guard !section.isClosed else { return .rejected(closed(section), mid: section.mid) }
        return switch section.use {
        case .sentByClient: .live(clientSection(section))
        case .playing(let placement): .live(remoteTrackSection(section, placement, isHead: isHead))
        case .empty, .declined, .parked, .closing, .free:
            .live(makeSection(section, .inactive, codecs: [placeholderCodecs[section.kind]].compactMap { $0 }))
        }
    }

    private func closed(_ section: OfferedSection) -> MediaDescription {
        MediaDescription(
            type: section.kind.rawValue,
            port: 0,
            protocolName: "UDP/TLS/RTP/SAVPF",
            formats: [placeholderCodecs[section.kind]?.payloadType.description ?? "0"]
        )
    }

    private func makeSection(
        _ section: OfferedSection,
        _ direction: MediaDirection,
        codecs: [CodecParameters],
        hasLayers: Bool = false
    ) -> LocalSection {
        LocalSection(
            kind: section.kind,
            mid: section.mid,
            direction: direction,
            codecs: codecs,
            extensionLines: HeaderExtension.offered(section.kind, codecs: codecs, hasLayers: hasLayers)
        )
    }

    private func clientSection(_ section: OfferedSection) -> LocalSection {
        let layers = section.kind == .video ? clientMedia.layers : []
        var line = makeSection(
            section,
            .recvonly,
            codecs: [clientCodecs[section.kind]].compactMap { $0 },
            hasLayers: !layers.isEmpty
        )
        line.layers = layers.map {
            RemoteLayer(
                attribute: RIDAttribute(rid: $0.rid, direction: .recv),
                isPaused: !$0.isActive || pausedLayers.contains($0.rid)
            )
        }
        if let kbps = section.kind == .audio ? clientMedia.audioKbps : clientMedia.videoKbps, kbps > 0 {
            let bits = kbps.multipliedReportingOverflow(by: 1_000)
            line.bandwidths = bits.overflow ? ["AS:\(kbps)"] : LocalSection.bandwidths(bitsPerSecond: bits.partialValue)
        }
        return line
    }

    private func remoteTrackSection(
        _ section: OfferedSection,
        _ placement: OfferedSection.Placement,
        isHead: Bool
    ) -> LocalSection {
        var codecs = placement.codecs
        // A client without the track's codecs rejects the m-line. If that is the BUNDLE-tagged one, it could lose the
        // transport, so the offer adds a codec that every client has.
        if isHead, let common = placeholderCodecs[section.kind], !codecs.contains(common) { codecs.append(common) }
        var line = makeSection(section, .sendonly, codecs: codecs)
        line.msid = (mediaStreamIdentifier(placement.key.streamID), placement.trackID)
        line.cname = placement.cname
        line.streams = [LocalSection.Stream(ssrc: placement.ssrc, rtxSSRC: placement.rtxSSRC)]
        return line
    }
}
