import Base
import Forwarding
import MediaTypes
import Room
import Wire

/// Everything that happens in a world, as one number.
///
/// It covers the instant, both addresses and the length of every datagram that is sent; of STUN all bytes, of RTP and RTCP the
/// plain header, of DTLS the kind; the instant at which every datagram arrives; of RTP that arrives at participants of rooms
/// the decrypted payload; and every event of a peer and every effect of a channel. It leaves out what comes from OpenSSL's
/// own entropy: the bytes of DTLS, the lengths of its signatures, ciphertexts and tags.
struct Trace: Equatable {
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    /// What was noted.
    private(set) var count = 0

    private mutating func mix(_ word: UInt64) {
        hash = (hash ^ word) &* 0x9E37_79B9_7F4A_7C15
        hash ^= hash >> 32
    }

    private mutating func mix(_ bytes: RawSpan) {
        mix(UInt64(bytes.byteCount))
        var offset = 0
        while offset + 8 <= bytes.byteCount {
            mix(UInt64(bytes.bigEndianUInt32(at: offset)) << 32 | UInt64(bytes.bigEndianUInt32(at: offset + 4)))
            offset += 8
        }
        var rest: UInt64 = 0
        while offset < bytes.byteCount {
            rest = rest << 8 | UInt64(bytes.byte(at: offset))
            offset += 1
        }
        mix(rest)
    }

    private mutating func begin(at now: Instant) {
        count += 1
        mix(UInt64(bitPattern: now.nanoseconds))
    }

    private mutating func mix(_ address: TransportAddress) {
        mix(address.ip.high)
        mix(address.ip.low)
        mix(UInt64(address.port))
    }

    /// A datagram that is sent.
    mutating func note(_ bytes: [UInt8], from: TransportAddress, to: TransportAddress, at now: Instant) {
        begin(at: now)
        mix(from)
        mix(to)
        mix(UInt64(VirtualNetwork.repeatableLength(bytes)))
        guard let first = bytes.first else { return }
        switch first {
        case 0...3: mix(unsafe bytes.span.bytes)
        case 128...191:
            let isRTCP = bytes.count > 1 && (192...223).contains(bytes[1])
            mix(unsafe bytes.span.bytes.extracting(0..<min(bytes.count, isRTCP ? 8 : 12)))
        default: mix(UInt64(first))
        }
    }

    /// A datagram that arrives.
    mutating func note(arrivalAt to: TransportAddress, from: TransportAddress, at now: Instant) {
        begin(at: now)
        mix(from)
        mix(to)
    }

    /// Media that arrived, decrypted.
    mutating func note(_ payload: RawSpan, of packet: PacketDescription, at now: Instant) {
        begin(at: now)
        mix(UInt64(bitPattern: packet.sequence.rawValue))
        mix(UInt64(packet.timestamp.rawValue))
        mix(payload)
    }

    mutating func note(_ event: PeerEvent, of peer: PeerID, at now: Instant) {
        begin(at: now)
        mix(unsafe Array("\(peer) \(event)".utf8).span.bytes)
    }

    mutating func note(_ effect: ChannelModel.Effect, at now: Instant) {
        begin(at: now)
        mix(unsafe Array("\(effect)".utf8).span.bytes)
    }
}
