import SRTP
import Wire

/// Packets that claim to be protected, mixed with some that are: the first byte chooses the profile.
func fuzzSRTP(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let profile = input.pick(SRTPProfile.allCases)
    let length = profile.keyLength + profile.saltLength
    let near = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 7 + 3) }
    let far = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 5 + 1) }
    guard let ours = SRTPKeyingMaterial(profile: profile, local: near, remote: far),
        let theirs = SRTPKeyingMaterial(profile: profile, local: far, remote: near),
        let receiver = try? LibSRTPTransform(ours, sourcesMax: 4), let sender = try? LibSRTPTransform(theirs)
    else { fatalError("no transform") }
    while !input.isAtEnd {
        let action = input.byte()
        let packet = input.chunk()
        let isRTCP = action & 1 != 0
        let room = action & 2 != 0 ? SRTPSession.overheadBytesMax : input.choice(SRTPSession.overheadBytesMax + 1)
        let known = receiver.sourceCount
        guard action & 4 == 0 else {
            let accepted = unprotect(packet, room: room, isRTCP: isRTCP, with: receiver)
            require(accepted == nil, "what nobody protected is refused")
            require(receiver.sourceCount == known, "and makes no source known")
            continue
        }
        guard let protected = protect(packet, room: room, isRTCP: isRTCP, with: sender) else { continue }
        if let plain = unprotect(protected, room: 0, isRTCP: isRTCP, with: receiver) {
            require(plain == packet, "what was protected comes out as it was")
        }
        require(receiver.sourceCount <= 4, "sources are bounded")
        require(unprotect(protected, room: 0, isRTCP: isRTCP, with: receiver) == nil, "a replay is refused")
        if action & 8 != 0 { receiver.removeStream(SSRC(rawValue: input.uint32())) }
    }
}

/// Protects a copy of `packet` in a buffer of exactly `room` more bytes.
func protect(_ packet: [UInt8], room: Int, isRTCP: Bool, with transform: LibSRTPTransform) -> [UInt8]? {
    inPlace(packet, room: room) { span, length in
        isRTCP
            ? try? transform.protectRTCP(&span, length: length) : try? transform.protectRTP(&span, length: length)
    }
}

/// Authenticates and decrypts a copy of `packet` in a buffer of exactly `room` more bytes.
func unprotect(_ packet: [UInt8], room: Int, isRTCP: Bool, with transform: LibSRTPTransform) -> [UInt8]? {
    inPlace(packet, room: room) { span, length in
        isRTCP
            ? try? transform.unprotectRTCP(&span, length: length) : try? transform.unprotectRTP(&span, length: length)
    }
}

private func inPlace(_ packet: [UInt8], room: Int, _ body: (inout MutableRawSpan, Int) -> Int?) -> [UInt8]? {
    // An allocation of its own, so that a byte beyond its end is noticed.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: packet.count + room, alignment: 1)
    defer { unsafe buffer.deallocate() }
    unsafe buffer.copyBytes(from: packet)
    var span = unsafe buffer.mutableBytes
    guard let length = body(&span, packet.count) else { return nil }
    return span.bytes.extracting(0..<length).array()
}

func seedsSRTP() -> [(name: String, bytes: [UInt8])] {
    SRTPProfile.allCases.indices.map { profile in
        let bytes = SeedWriter.make { seed in
            seed.byte(profile)
            for number in 0..<3 {
                seed.byte(2)
                seed.chunk(
                    makeRTP(
                        sequence: UInt16(truncatingIfNeeded: 65_534 + number),
                        extensions: [(1, [2])],
                        payload: [1, 2, 3]
                    )
                )
                seed.byte(3)
                seed.chunk([0x80, 201, 0, 1, 0, 0, 0, 1])
                seed.byte(6)
                seed.chunk(makeRTP(payload: [UInt8](repeating: 9, count: 30)))
            }
        }
        return ("profile-\(profile)", bytes)
    }
}
