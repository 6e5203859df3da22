import Testing
import Wire

@testable import SRTP

/// `SRTPSender`: protects out of place with an explicit index, finished by a flush.
struct SenderTests {
    /// Protects `packet` with the handle, from a payload elsewhere; `nil` when refused.
    private static func protect(
        _ transform: any SRTPTransform,
        _ packet: [UInt8],
        headerLength: Int = 12,
        index: UInt64,
        engine: SRTPEngine
    ) throws -> [UInt8]? {
        let ssrc = packet[8..<12].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        let stream = try #require(transform.sender.stream(SSRC(rawValue: ssrc)))
        var target =
            Array(packet.prefix(headerLength))
            + [UInt8](repeating: 0xEE, count: packet.count - headerLength + SRTPLimits.overheadBytesMax)
        let payload = Array(packet.dropFirst(headerLength))
        let length = unsafe target.withUnsafeMutableBytes { target in
            unsafe payload.withUnsafeBytes { payload in
                defer { engine.flush() }
                // An empty array has no address.
                let source = unsafe payload.baseAddress ?? UnsafeRawPointer(target.baseAddress!)
                return unsafe transform.sender.protectRTP(
                    stream,
                    target.baseAddress!,
                    headerLength: headerLength,
                    payload: source,
                    payloadLength: payload.count,
                    index: index
                )
            }
        }
        guard length >= 0 else { return nil }
        #expect(length == packet.count + transform.sender.tagLength)
        #expect(target[length...].allSatisfy { $0 == 0xEE })
        return Array(target.prefix(length))
    }

    private static func keys(_ profile: SRTPProfile, seed: UInt8 = 1) throws -> SRTPKeyingMaterial {
        try #require(
            SRTPKeyingMaterial(
                profile: profile,
                local: Pair.keys(profile, seed: seed),
                remote: Pair.keys(profile, seed: seed ^ 0x80)
            )
        )
    }

    @Test(arguments: Flavor.all)
    func `any index is protected as the RFCs specify, whatever was sent before`(flavor: Flavor) throws {
        let engine = try SRTPEngine(flavor.backend)
        let transform = try engine.makeTransform(try Self.keys(flavor.profile))
        let reference = Reference(profile: flavor.profile, master: Pair.keys(flavor.profile, seed: 1))
        let indices: [UInt64] = [
            0x5_0003, 0x5_0004, 0x5_0002, 0x5_FFFF, 0x6_0000, 0x6_8001, 0x9_0000, 0x9_8000, 0x9_8001, 0x2_0009_8001,
            0x2_0009_8000, 0x2_000A_0001, 0x2_0009_FFFF, 0xFFFF_FFFF_FFFE, 0xFFFF_FFFF_FFFF, 0xFFFF_FFFF_FF00,
        ]
        for index in indices {
            let packet = rtp(UInt16(truncatingIfNeeded: index), payload: Int(index % 90))
            let expected = reference.protectRTP(
                packet,
                headerLength: 12,
                rollOver: UInt32(truncatingIfNeeded: index >> 16)
            )
            #expect(try Self.protect(transform, packet, index: index, engine: engine) == expected, "\(index)")
        }
        // There is no index after the last one.
        #expect(try Self.protect(transform, rtp(0), index: 1 << 48, engine: engine) == nil)
        #expect(throws: SRTPError.keysExpired) { try transform.protectedRTP(rtp(0)) }
        // After a source with a high index, a new one starts low.
        let other = rtp(9, ssrc: 8)
        #expect(
            try Self.protect(transform, other, index: 9, engine: engine)
                == reference.protectRTP(other, headerLength: 12, rollOver: 0)
        )
    }

    @Test(arguments: Flavor.all)
    func `handles and the calls that estimate the index share one state`(flavor: Flavor) throws {
        let engine = try SRTPEngine(flavor.backend)
        let transform = try engine.makeTransform(try Self.keys(flavor.profile))
        let reference = Reference(profile: flavor.profile, master: Pair.keys(flavor.profile, seed: 1))
        #expect(
            try transform.protectedRTP(rtp(0xFFFF)) == reference.protectRTP(rtp(0xFFFF), headerLength: 12, rollOver: 0)
        )
        for number in [UInt16(3), 4] {
            #expect(
                try Self.protect(transform, rtp(number), index: 0x1_0000 + UInt64(number), engine: engine)
                    == reference.protectRTP(rtp(number), headerLength: 12, rollOver: 1)
            )
        }
        #expect(try transform.protectedRTP(rtp(5)) == reference.protectRTP(rtp(5), headerLength: 12, rollOver: 1))
        _ = try Self.protect(transform, rtp(0), index: 0x7_0000, engine: engine)
        #expect(try transform.protectedRTP(rtp(5)) == reference.protectRTP(rtp(5), headerLength: 12, rollOver: 7))
    }

    @Test(arguments: Flavor.all)
    func `an index can be repeated if allowed, but not from behind the window`(flavor: Flavor) throws {
        let engine = try SRTPEngine(flavor.backend)
        let lenient = try engine.makeTransform(try Self.keys(flavor.profile))
        let strict = try engine.makeTransform(try Self.keys(flavor.profile), allowsRepeatTransmission: false)
        for transform in [lenient, strict] {
            let isStrict = transform === strict
            func send(_ index: UInt64) throws -> Bool {
                let packet = rtp(UInt16(truncatingIfNeeded: index))
                return try Self.protect(transform, packet, index: index, engine: engine) != nil
            }
            #expect(try send(0x1_0000))
            #expect(try send(0x1_0000) == !isStrict)
            #expect(try send(0x1_0002))
            #expect(try send(0x1_0001))
            #expect(try send(0x1_0001) == !isStrict)
            #expect(try send(0x1_0400))
            #expect(try !send(0x1_0000))
            #expect(try send(0x1_0002) == !isStrict)
            #expect(try send(0x1_0003))
            let again = try? transform.protectedRTP(rtp(0x400))
            #expect((again == nil) == isStrict)
        }
    }

    @Test(arguments: Flavor.all)
    func `one flush finishes the packets of many peers`(flavor: Flavor) throws {
        let engine = try SRTPEngine(flavor.backend)
        let peers = try (0..<7).map { seed in
            try engine.makeTransform(try Self.keys(flavor.profile, seed: UInt8(seed)))
        }
        let references = (0..<7).map { Reference(profile: flavor.profile, master: Pair.keys(flavor.profile, seed: $0)) }
        // More than one batch of the multi-buffer backend, then every possible remainder of its lanes.
        for count in [150] + Array(0...20) {
            let room = 700
            var arena = [UInt8](repeating: 0, count: count * room + 1)
            unsafe arena.withUnsafeMutableBytes { arena in
                for number in 0..<count {
                    let packet = rtp(UInt16(number), payload: number * 37 % 600)
                    let place = unsafe arena.baseAddress! + number * room + 1
                    unsafe packet.withUnsafeBytes {
                        unsafe place.copyMemory(from: $0.baseAddress!, byteCount: packet.count)
                    }
                    let sender = peers[number % 7].sender
                    let length = unsafe sender.protectRTP(
                        sender.stream(SSRC(rawValue: 0xCAFE_BABE))!,
                        place,
                        headerLength: 12,
                        payload: place + 12,
                        payloadLength: packet.count - 12,
                        index: UInt64(number)
                    )
                    #expect(length == packet.count + sender.tagLength)
                }
                engine.flush()
            }
            for number in 0..<count {
                let packet = rtp(UInt16(number), payload: number * 37 % 600)
                let expected = references[number % 7].protectRTP(packet, headerLength: 12, rollOver: 0)
                let start = number * room + 1
                #expect(Array(arena[start..<start + expected.count]) == expected, "packet \(number) of \(count)")
            }
        }
    }

    @Test(arguments: Flavor.all)
    func `packets of the maximum length are protected in one batch`(flavor: Flavor) throws {
        let engine = try SRTPEngine(flavor.backend)
        let keys = try Self.keys(flavor.profile)
        let transform = try engine.makeTransform(keys)
        let reference = Reference(profile: flavor.profile, master: keys.local)
        let sender = transform.sender
        let stream = try #require(sender.stream(SSRC(rawValue: 0xCAFE_BABE)))
        var packets = (1...6).map { rtp($0, payload: 65_507 - 12 - sender.tagLength) }
        let expected = packets.map { reference.protectRTP($0, headerLength: 12, rollOver: 0) }
        let room = 65_507 + SRTPLimits.overheadBytesMax
        var arena = [UInt8](repeating: 0, count: packets.count * room)
        unsafe arena.withUnsafeMutableBytes { arena in
            for number in packets.indices {
                let place = unsafe arena.baseAddress! + number * room
                unsafe packets[number].withUnsafeMutableBytes { packet in
                    unsafe place.copyMemory(from: packet.baseAddress!, byteCount: 12)
                    let length = unsafe sender.protectRTP(
                        stream,
                        place,
                        headerLength: 12,
                        payload: packet.baseAddress! + 12,
                        payloadLength: packet.count - 12,
                        index: UInt64(number + 1)
                    )
                    #expect(length == 65_507)
                }
            }
            engine.flush()
        }
        for (number, packet) in expected.enumerated() {
            #expect(arena[(number * room)...].starts(with: packet), "packet \(number)")
        }
    }

    @Test(arguments: Flavor.all)
    func `the deinit of a transform finishes its packets, also after its engine was released`(
        flavor: Flavor
    ) throws {
        var engine: SRTPEngine? = try SRTPEngine(flavor.backend)
        let keys = try Self.keys(flavor.profile)
        let survivor = try #require(try engine?.makeTransform(keys))
        var transform = try engine?.makeTransform(keys)
        let packet = rtp(1, payload: 100)
        var target = packet + [UInt8](repeating: 0, count: SRTPLimits.overheadBytesMax)
        let expected = Reference(profile: flavor.profile, master: keys.local)
            .protectRTP(packet, headerLength: 12, rollOver: 0)
        unsafe target.withUnsafeMutableBytes { target in
            guard let sender = transform?.sender, let stream = sender.stream(SSRC(rawValue: 0xCAFE_BABE)) else {
                return
            }
            let length = unsafe sender.protectRTP(
                stream,
                target.baseAddress!,
                headerLength: 12,
                payload: target.baseAddress! + 12,
                payloadLength: 100,
                index: 1
            )
            #expect(length == expected.count)
            transform = nil
        }
        #expect(Array(target.prefix(expected.count)) == expected)
        engine = nil
        #expect(try survivor.protectedRTP(packet) == expected)
    }

    @Test(arguments: SRTPBackend.available)
    func `the number of sent sources is bounded`(backend: SRTPBackend) throws {
        let transform = try SRTPEngine(backend).makeTransform(try Self.keys(.aeadAES128GCM))
        for ssrc in 0..<UInt32(SRTPLimits.sendingSourcesMax) {
            #expect(transform.sender.stream(SSRC(rawValue: ssrc)) != nil)
        }
        #expect(transform.sender.stream(SSRC(rawValue: .max)) == nil)
        #expect(transform.sender.stream(SSRC(rawValue: 5)) != nil)
        #expect(throws: SRTPError.tooManySources) { try transform.protectedRTP(rtp(1, ssrc: .max)) }
        #expect(throws: SRTPError.tooManySources) { try transform.protectedRTCP(rtcp(ssrc: .max)) }
        #expect(throws: Never.self) { try transform.protectedRTP(rtp(1, ssrc: 5)) }
    }
}
