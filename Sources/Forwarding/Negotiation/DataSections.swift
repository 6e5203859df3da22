import MediaTypes
internal import Wire

/// A peer's section of data channels (RFC 8841).
struct RemoteDataSection {
    /// Its place among all sections.
    let index: Int
    let mid: MID
    let parameters: DataTransportParameters

    private static let protocols: Set<String> = ["UDP/DTLS/SCTP", "TCP/DTLS/SCTP"]
    static let format = "webrtc-datachannel"
    /// The limit of a peer that gives none (RFC 8841 §6.1).
    private static let messageBytesDefault = 65_536

    /// `nil` for another section, and for one that the server cannot use: rejected, without a MID, or in the syntax of drafts
    /// (`a=sctpmap`).
    init?(_ section: RemoteSection, index: Int) {
        guard section.media.type == "application", !section.isRejected, let mid = section.mid,
            Self.protocols.contains(section.media.protocolName), section.media.formats == [Self.format],
            let port = section.attributes.value(of: "sctp-port").flatMap({ UInt16($0) }), port != 0
        else { return nil }
        let bytesMax = section.attributes.value(of: "max-message-size").map { UInt64($0) ?? UInt64.max }
        self.index = index
        self.mid = mid
        // 0 is no limit.
        let limit = bytesMax == 0 ? Int.max : bytesMax.map { Int(clamping: $0) } ?? Self.messageBytesDefault
        parameters = DataTransportParameters(port: port, messageBytesMax: limit)
    }
}

/// The section of data channels in a local description.
struct LocalDataSection {
    var mid: MID
    /// The SCTP port of both ends.
    var port = DataTransportParameters.portDefault
    var protocolName = "UDP/DTLS/SCTP"

    /// The section as SDP lines.
    func media(_ lines: LocalTransportLines, isBundleHead: Bool) -> MediaDescription {
        let address = lines.defaultAddress
        var attributes = [SDPAttribute("mid", mid.value)] + lines.credentialAttributes
        attributes += [
            SDPAttribute("fingerprint", lines.transport.fingerprint.description),
            SDPAttribute("setup", lines.setup.rawValue),
            SDPAttribute("sctp-port", String(port)),
            SDPAttribute("max-message-size", String(DataTransportParameters.messageBytesMax)),
        ]
        if isBundleHead { attributes += lines.candidateAttributes }
        return MediaDescription(
            type: "application",
            port: address.port,
            protocolName: protocolName,
            formats: [RemoteDataSection.format],
            connection: address.connection,
            attributes: attributes
        )
    }
}
