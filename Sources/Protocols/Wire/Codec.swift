/// What a track carries.
public enum MediaKind: String, Hashable, Sendable, Codable, CaseIterable { case audio, video }

/// A payload format that the server recognises, by its SDP encoding name. Others are never negotiated.
public enum CodecName: String, Hashable, Sendable, Codable, BitwiseCopyable, CaseIterable {
    case opus, red
    case vp8 = "VP8"
    case vp9 = "VP9"
    case av1 = "AV1"
    case h264 = "H264"
    case h265 = "H265"

    public var kind: MediaKind {
        switch self {
        case .opus, .red: .audio
        case .vp8, .vp9, .av1, .h264, .h265: .video
        }
    }
    /// RTP clock rate in Hz (RFC 7587 §4.1, RFC 7741 §4.1 and their kin).
    public var clockRate: Int { kind == .audio ? 48_000 : 90_000 }
    /// Audio channels in `a=rtpmap`: always 2 for Opus (RFC 7587 §7) and for RED that repeats it; 1, which is left out, for
    /// video (RFC 8866 §6.6).
    public var channels: Int { kind == .audio ? 2 : 1 }

    /// Names compare without case in SDP (RFC 8866 §6.6).
    public init?(sdpName: String) {
        let lowered = sdpName.lowercased()
        guard let match = Self.allCases.first(where: { $0.rawValue.lowercased() == lowered }) else { return nil }
        self = match
    }
}

/// The RTP header extensions that the server understands; all others are dropped at negotiation.
public enum HeaderExtension: UInt8, Hashable, Sendable, CaseIterable {
    case mid, rtpStreamID, repairedRTPStreamID, absoluteSendTime, transportSequenceNumber
    case audioLevel, videoOrientation, playoutDelay, dependencyDescriptor, videoContentType

    public var uri: String {
        switch self {
        case .mid: "urn:ietf:params:rtp-hdrext:sdes:mid"
        case .rtpStreamID: "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
        case .repairedRTPStreamID: "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
        case .absoluteSendTime: "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
        case .transportSequenceNumber: "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
        case .audioLevel: "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
        case .videoOrientation: "urn:3gpp:video-orientation"
        case .playoutDelay: "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
        case .dependencyDescriptor:
            "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
        case .videoContentType: "http://www.webrtc.org/experiments/rtp-hdrext/video-content-type"
        }
    }
    public init?(uri: String) {
        guard let match = Self.allCases.first(where: { $0.uri == uri }) else { return nil }
        self = match
    }
}

/// Which local identifier each header extension has toward one peer. A fixed table: a look-up is an index.
public struct HeaderExtensionMap: Hashable, Sendable {
    /// The extensions that there are.
    public static let count = 10
    private var ids: [10 of UInt8] = .init(repeating: 0)
    public init() {}

    /// - Parameter identifiers: in the order of the extensions' raw values, 0 for one that is not negotiated. Missing ones count
    ///   as 0, and those beyond the last extension are left out.
    public init(identifiers: [UInt8]) {
        for (index, id) in identifiers.prefix(Self.count).enumerated() { ids[index] = id }
    }

    /// In the order of the extensions' raw values; 0 where one is not negotiated.
    public var identifiers: [UInt8] { ids.indices.map { ids[$0] } }

    /// `nil` where the extension is not negotiated.
    public subscript(_ kind: HeaderExtension) -> HeaderExtensionID? {
        get { HeaderExtensionID(rawValue: ids[Int(kind.rawValue)]) }
        set { ids[Int(kind.rawValue)] = newValue?.rawValue ?? 0 }
    }
    /// What an identifier stands for; `nil` when it is not negotiated.
    public func kind(of id: UInt8) -> HeaderExtension? {
        guard id != 0 else { return nil }
        // An index loop: `allCases` is an array made anew, and this runs for every element of every packet.
        for index in ids.indices where ids[index] == id { return HeaderExtension(rawValue: UInt8(index)) }
        return nil
    }
    public static func == (left: Self, right: Self) -> Bool {
        HeaderExtension.allCases.allSatisfy { left[$0] == right[$0] }
    }
    public func hash(into hasher: inout Hasher) {
        for kind in HeaderExtension.allCases { hasher.combine(ids[Int(kind.rawValue)]) }
    }
}
