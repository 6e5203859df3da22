import MediaTypes
import Wire

extension OfferedSession {
    /// The lines as they are now, as text. Those that changed since the last time are described anew.
    mutating func describe() -> String {
        let head = head
        let lines = LocalTransportLines(transport: local, setup: .actpass, isLite: true)
        var text = LocalDescription(
            sessionID: sessionID,
            version: version,
            lines: lines,
            bundle: sections.filter { !$0.isClosed }.map(\.mid),
            allowsMixedExtensions: true,
            sections: []
        ).serialized()
        for index in sections.indices {
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
        return text
    }

    private func line(_ section: OfferedSection, isHead: Bool) -> LocalDescription.Section {
        guard !section.isClosed else { return .rejected(closed(section), mid: section.mid) }
        return switch section.use {
        case .own: .live(ownLine(section))
        case .playing(let placement): .live(playingLine(section, placement, isHead: isHead))
        case .empty, .declined, .parked, .closing, .free:
            .live(makeLine(section, .inactive, codecs: [emptyCodecs[section.kind]].compactMap { $0 }))
        }
    }

    private func closed(_ section: OfferedSection) -> MediaDescription {
        MediaDescription(
            type: section.kind.rawValue,
            port: 0,
            protocolName: "UDP/TLS/RTP/SAVPF",
            formats: [emptyCodecs[section.kind]?.payloadType.description ?? "0"]
        )
    }

    private func makeLine(
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

    private func ownLine(_ section: OfferedSection) -> LocalSection {
        let layers = section.kind == .video ? own.layers : []
        var line = makeLine(
            section,
            .recvonly,
            codecs: [ownCodecs[section.kind]].compactMap { $0 },
            hasLayers: !layers.isEmpty
        )
        line.layers = layers.map {
            RemoteLayer(attribute: RIDAttribute(rid: $0.rid, direction: .recv), isPaused: !$0.isActive)
        }
        if let kbps = section.kind == .audio ? own.audioKbps : own.videoKbps, kbps > 0 {
            // Browsers read the one or the other (RFC 8866 §5.8 in kbit/s, RFC 3890 §6.2 in bit/s).
            let bits = kbps.multipliedReportingOverflow(by: 1_000)
            line.bandwidths = ["AS:\(kbps)"] + (bits.overflow ? [] : ["TIAS:\(bits.partialValue)"])
        }
        return line
    }

    private func playingLine(
        _ section: OfferedSection,
        _ placement: OfferedSection.Placement,
        isHead: Bool
    ) -> LocalSection {
        var codecs = placement.codecs
        // A client without any of the track's codecs refuses the line, and with the head of the bundle it could lose the
        // transport. So there is one that it has.
        if isHead, let usual = emptyCodecs[section.kind], !codecs.contains(usual) { codecs.append(usual) }
        var line = makeLine(section, .sendonly, codecs: codecs)
        line.msid = (mediaStreamIdentifier(placement.key.streamID), placement.trackID)
        line.cname = placement.cname
        line.streams = [LocalSection.Stream(ssrc: placement.ssrc, rtxSSRC: placement.rtxSSRC)]
        return line
    }
}
