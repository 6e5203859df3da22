import MediaTypes
import Wire

/// The negotiated media of the peer. It subscribes to its own tracks, so that one handshake creates both a publisher
/// and a subscriber.
enum ConnectedMedia {
    static let video = mid("v")
    static let layered = mid("l")
    static let audio = mid("a")
    static let ssrcs: [UInt32] = [0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666, 0x7777, 0]
    static let slotSSRCs: [UInt32] = [0xA1, 0xA2, 0xB1, 0xB2, 0xB3]

    static func mid(_ text: String) -> MID {
        guard let mid = MID(text) else { fatalError("not a MID") }
        return mid
    }
    static func rid(_ text: String) -> RID {
        guard let rid = RID(text) else { fatalError("not a RID") }
        return rid
    }

    /// All header extensions, with identifiers from 1.
    private static func extensions(shiftedBy shift: UInt8) -> HeaderExtensionMap {
        var map = HeaderExtensionMap()
        for kind in HeaderExtension.allCases { map[kind] = HeaderExtensionID(rawValue: kind.rawValue + 1 + shift) }
        return map
    }

    private static func codecs(_ shift: UInt8, rtx: Bool) -> [CodecParameters] {
        [CodecName.vp8, .vp9, .av1, .h264, .h265].enumerated().map { index, name in
            CodecParameters(
                name: name,
                payloadType: PayloadType(wire: 96 + shift + UInt8(2 * index)),
                rtxPayloadType: rtx ? PayloadType(wire: 97 + shift + UInt8(2 * index)) : nil,
                format: name == .h264
                    ? [
                        FormatParameter(key: "packetization-mode", value: "1"),
                        FormatParameter(key: "profile-level-id", value: "42e01f"),
                    ] : [],
                feedback: [.nack, .pictureLoss, .fullIntraRequest, .transportCC]
            )
        }
    }
    private static func audioCodecs(red: Bool, shift: UInt8) -> [CodecParameters] {
        let opus = CodecParameters(name: .opus, payloadType: PayloadType(wire: 111 - shift))
        guard red else { return [opus] }
        let inner = FormatParameter(key: "", value: "\(opus.payloadType)/\(opus.payloadType)")
        return [opus, CodecParameters(name: .red, payloadType: PayloadType(wire: 63 - shift), format: [inner])]
    }

    static var receive: [ReceiveTrackParameters] {
        [
            ReceiveTrackParameters(
                mid: audio,
                kind: .audio,
                codecs: audioCodecs(red: true, shift: 0),
                extensions: extensions(shiftedBy: 0),
                ssrcs: [SSRC(rawValue: ssrcs[0])]
            ),
            ReceiveTrackParameters(
                mid: video,
                kind: .video,
                codecs: codecs(0, rtx: true),
                extensions: extensions(shiftedBy: 0),
                ssrcs: [SSRC(rawValue: ssrcs[1])],
                rtxSSRCs: [SSRC(rawValue: ssrcs[1]): SSRC(rawValue: ssrcs[2])]
            ),
            ReceiveTrackParameters(
                mid: layered,
                kind: .video,
                codecs: codecs(0, rtx: true),
                extensions: extensions(shiftedBy: 0),
                rids: [rid("h"), rid("m"), rid("l")]
            ),
        ]
    }

    static var send: [SendTrackParameters] {
        func slot(
            _ name: String,
            _ kind: MediaKind,
            _ codecs: [CodecParameters],
            _ index: Int,
            rtx: UInt32? = nil,
            shift: UInt8
        ) -> SendTrackParameters {
            SendTrackParameters(
                mid: mid(name),
                kind: kind,
                codecs: codecs,
                extensions: extensions(shiftedBy: shift),
                ssrc: SSRC(rawValue: slotSSRCs[index]),
                rtxSSRC: rtx.map { SSRC(rawValue: $0) },
                cname: "c"
            )
        }
        return [
            slot("s0", .audio, audioCodecs(red: true, shift: 2), 0, shift: 1),
            slot("s1", .audio, audioCodecs(red: false, shift: 0), 1, shift: 20),
            slot("s2", .video, codecs(10, rtx: true), 2, rtx: 0xB9, shift: 0),
            slot("s3", .video, codecs(0, rtx: false), 3, shift: 14),
            slot("s4", .video, [codecs(0, rtx: true)[0]], 4, rtx: 0xB8, shift: 3),
        ]
    }
}
