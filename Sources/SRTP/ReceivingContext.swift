import Wire

/// What is kept for one source that authenticated a packet.
struct InboundStream: SourceState {
    let ssrc: UInt32
    var rtp = ReplayWindow<16>()
    var rtcp = ReplayWindow<2>()

    init(ssrc: UInt32) { self.ssrc = ssrc }
}

/// The receiving direction of a transform on ciphers of its own. Until a packet authenticates it changes nothing here.
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
        let shape = try PacketShape.rtp(packet, length: length, trailer: tagLength)
        let ssrc = shape.source.rawValue
        let known = try unsafe admit(ssrc)
        let index = unsafe PacketIndex.estimate(shape.sequence, newest: known?.pointee.rtp.newest ?? 0)
        guard index < PacketIndex.end else { throw .keysExpired }
        if let known = unsafe known { try unsafe Self.check(known.pointee.rtp.check(index)) }
        let plain = length - tagLength
        let isAuthentic = unsafe packet.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return unsafe rtp.openRTP(
                start,
                headerLength: shape.headerLength,
                payloadLength: plain - shape.headerLength,
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
        let plain = length - tagLength - PacketShape.rtcpIndexBytes
        let ssrc = try PacketShape.rtcpSource(packet, length: length, trailer: length - plain).rawValue
        let known = try unsafe admit(ssrc)
        // In GCM the trailer is last, in counter mode the tag is (RFC 7714 §9.2, RFC 3711 §3.4).
        let trailer = packet.bytes.bigEndianUInt32(at: rtcp.isTrailerLast ? length - 4 : plain)
        // WebRTC has no use for SRTCP in the clear, so whoever clears the flag is not the peer.
        guard trailer & PacketShape.encryptedFlag != 0 else { throw .authentication }
        let index = trailer & ~PacketShape.encryptedFlag
        if let known = unsafe known { try unsafe Self.check(known.pointee.rtcp.check(UInt64(index))) }
        let isAuthentic = unsafe packet.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return unsafe rtcp.openRTCP(start, length: plain, ssrc: ssrc, index: index)
        }
        guard isAuthentic else { throw .authentication }
        let stream = unsafe known ?? sources.insert(InboundStream(ssrc: ssrc))
        unsafe stream.pointee.rtcp.insert(UInt64(index))
        return plain
    }

    /// The state of a known source, `nil` for another that there is a place for.
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
