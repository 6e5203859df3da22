import Base
import SRTP
import Testing
import Wire

/// An available backend and a profile.
struct Flavor: Sendable, CustomTestStringConvertible {
    let backend: SRTPBackend
    let profile: SRTPProfile

    static let all = SRTPBackend.available.flatMap { backend in
        SRTPProfile.allCases.map { Flavor(backend: backend, profile: $0) }
    }

    var testDescription: String { "\(backend.rawValue), \(profile)" }
}

/// Two transforms with matching keys.
struct Pair {
    let near: any SRTPTransform
    let far: any SRTPTransform
    /// The reference implementation with the keys of `near`.
    let reference: Reference

    static func keys(_ profile: SRTPProfile, seed: UInt8) -> [UInt8] {
        (0..<profile.keyLength + profile.saltLength).map { UInt8(truncatingIfNeeded: $0 &* 7) ^ seed }
    }

    init(_ flavor: Flavor, sourcesMax: Int = 64, allowsRepeatTransmission: Bool = true) throws {
        try self.init(near: flavor.backend, far: flavor.backend, flavor.profile, sourcesMax, allowsRepeatTransmission)
    }

    init(
        near: SRTPBackend,
        far: SRTPBackend,
        _ profile: SRTPProfile,
        _ sourcesMax: Int = 64,
        _ allowsRepeatTransmission: Bool = true
    ) throws {
        let local = Self.keys(profile, seed: 0x31)
        let remote = Self.keys(profile, seed: 0xC4)
        let nearKeys = try #require(SRTPKeyingMaterial(profile: profile, local: local, remote: remote))
        let farKeys = try #require(SRTPKeyingMaterial(profile: profile, local: remote, remote: local))
        self.near = try SRTPEngine(near)
            .makeTransform(nearKeys, sourcesMax: sourcesMax, allowsRepeatTransmission: allowsRepeatTransmission)
        self.far = try SRTPEngine(far).makeTransform(
            farKeys,
            sourcesMax: sourcesMax,
            allowsRepeatTransmission: allowsRepeatTransmission
        )
        reference = Reference(profile: profile, master: local)
    }
}

extension SRTPTransform {
    func protectedRTP(_ packet: [UInt8]) throws(SRTPError) -> [UInt8] {
        try inPlace(packet) { (span, length) throws(SRTPError) in try protectRTP(&span, length: length) }
    }
    func protectedRTCP(_ packet: [UInt8]) throws(SRTPError) -> [UInt8] {
        try inPlace(packet) { (span, length) throws(SRTPError) in try protectRTCP(&span, length: length) }
    }
    func plainRTP(_ packet: [UInt8]) throws(SRTPError) -> [UInt8] {
        try inPlace(packet) { (span, length) throws(SRTPError) in try unprotectRTP(&span, length: length) }
    }
    func plainRTCP(_ packet: [UInt8]) throws(SRTPError) -> [UInt8] {
        try inPlace(packet) { (span, length) throws(SRTPError) in try unprotectRTCP(&span, length: length) }
    }
}

/// Runs `body` on a copy of `packet` with `room` more bytes, and returns as many bytes as `body` returns.
func inPlace(
    _ packet: [UInt8],
    room: Int = SRTPLimits.overheadBytesMax,
    _ body: (inout MutableRawSpan, Int) throws(SRTPError) -> Int
) throws(SRTPError) -> [UInt8] {
    var buffer = packet + [UInt8](repeating: 0xEE, count: room)
    var elements = buffer.mutableSpan
    var span = unsafe elements.mutableBytes
    let length = try body(&span, packet.count)
    return Array(buffer.prefix(length))
}

/// An RTP packet whose payload depends on its sequence number.
func rtp(_ sequence: UInt16, ssrc: UInt32 = 0xCAFE_BABE, payload: Int = 40) -> [UInt8] {
    var packet: [UInt8] = [0x80, 0x60]
    packet.append(bigEndian: sequence)
    packet.append(bigEndian: UInt32(sequence) &* 3_000)
    packet.append(bigEndian: ssrc)
    return packet + (0..<payload).map { UInt8(truncatingIfNeeded: $0 &+ Int(sequence)) }
}

/// A receiver report with one block.
func rtcp(ssrc: UInt32 = 0xCAFE_BABE, mark: UInt8 = 0) -> [UInt8] {
    var packet: [UInt8] = [0x81, 201, 0, 7]
    packet.append(bigEndian: ssrc)
    return packet + [UInt8](repeating: mark, count: 24)
}
