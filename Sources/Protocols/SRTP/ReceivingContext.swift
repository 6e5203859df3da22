import Base
import Wire

/// The state of one source that authenticated a packet.
struct InboundStream: SourceState {
    let ssrc: UInt32
    var rtp = ReplayWindow<16>()
    var rtcp = ReplayWindow<2>()

    init(ssrc: UInt32) { self.ssrc = ssrc }
}

/// The receiving direction of a ``NativeTransform``. A packet that does not authenticate changes nothing.
@safe
struct ReceivingContext: ~Copyable {
    private let rtp: PacketCipher
    private let rtcp: PacketCipher
    private let tagLength: Int
    private let sourcesMax: Int
    private(set) var sources = SourceTable<InboundStream>()

    init(rtp: PacketCipher, rtcp: PacketCipher, tagLength: Int, sourcesMax: Int) {
        self.rtp = rtp
        self.rtcp = rtcp
        self.tagLength = tagLength
        self.sourcesMax = sourcesMax
    }

    deinit {
        rtp.destroy()
        rtcp.destroy()
    }

    mutating func removeStream(_ ssrc: UInt32) { _ = sources.remove(ssrc) }

    @_lifetime(packet: copy packet)
    mutating func unprotectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        let layout = try PacketLayout.rtp(packet, length: length, trailer: tagLength)
        let ssrc = layout.source.rawValue
        let known = try unsafe admit(ssrc)
        let index = unsafe PacketIndex.estimate(layout.sequence, newest: known?.pointee.rtp.newest ?? 0)
        guard index < PacketIndex.end else { throw .keysExpired }
        if let known = unsafe known { try unsafe Self.check(known.pointee.rtp.check(index)) }
        let plain = length - tagLength
        let isAuthentic = unsafe packet.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return unsafe rtp.openRTP(
                start,
                headerLength: layout.headerLength,
                payloadLength: plain - layout.headerLength,
                ssrc: ssrc,
                index: index
            )
        }
        guard isAuthentic else { throw .authentication }
        let stream = unsafe known ?? sources.insert(InboundStream(ssrc: ssrc))
        unsafe stream.pointee.rtp.insert(index)
        return plain
    }

    @_lifetime(packet: copy packet)
    mutating func unprotectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        let plain = length - tagLength - PacketLayout.rtcpIndexBytes
        let ssrc = try PacketLayout.rtcpSource(packet, length: length, trailer: length - plain).rawValue
        let known = try unsafe admit(ssrc)
        // In GCM the trailer comes last, in counter mode the tag does (RFC 7714 §9.2, RFC 3711 §3.4).
        let trailer = packet.bytes.bigEndianUInt32(at: rtcp.isTrailerLast ? length - 4 : plain)
        // WebRTC peers always encrypt SRTCP, so a packet without the flag is forged. For one that is a replay, too, all backends
        // say the same: libsrtp looks for replays after the flag in counter mode, and before it in GCM.
        let isForged = trailer & PacketLayout.encryptedFlag == 0
        if isForged, !rtcp.isTrailerLast { throw .authentication }
        let index = trailer & ~PacketLayout.encryptedFlag
        if let known = unsafe known { try unsafe Self.check(known.pointee.rtcp.check(UInt64(index))) }
        guard !isForged else { throw .authentication }
        let isAuthentic = unsafe packet.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return unsafe rtcp.openRTCP(start, length: plain, ssrc: ssrc, index: index)
        }
        guard isAuthentic else { throw .authentication }
        let stream = unsafe known ?? sources.insert(InboundStream(ssrc: ssrc))
        unsafe stream.pointee.rtcp.insert(UInt64(index))
        return plain
    }

    /// The state of a known source; `nil` for a new one. Throws when there is no place for a new one.
    private mutating func admit(_ ssrc: UInt32) throws(SRTPError) -> UnsafeMutablePointer<InboundStream>? {
        if let known = unsafe sources.find(ssrc) { return unsafe known }
        guard sources.count < sourcesMax else { throw .tooManySources }
        return nil
    }

    private static func check(_ verdict: ReplayVerdict) throws(SRTPError) {
        switch verdict {
        case .unseen: return
        case .replayed: throw .replayed
        case .tooOld: throw .tooOld
        }
    }
}
