import Base
import SRTP
import TestSupport
import Wire

/// Forged and protected packets through every backend: all backends must send the same bytes and return the same
/// results. The first byte chooses the profile.
func fuzzSRTP(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let ends = Ends(input.pick(SRTPProfile.allCases), allowsRepeatTransmission: input.flag())
    while !input.isAtEnd {
        let action = input.byte()
        let packet = input.chunk()
        let isRTCP = action & 1 != 0
        let room = action & 2 != 0 ? SRTPLimits.overheadBytesMax : input.choice(SRTPLimits.overheadBytesMax + 1)
        let known = ends.sourceCount
        guard action & 4 == 0 else {
            let accepted = ends.unprotect(packet, room: room, isRTCP: isRTCP)
            require(accepted == nil, "an unprotected packet is refused")
            require(ends.sourceCount == known, "and makes no source known")
            continue
        }
        let isByHandle = action & 16 != 0 && !isRTCP
        let protected =
            isByHandle
            ? ends.protect(packet, rollOver: input.uint32()) : ends.protect(packet, room: room, isRTCP: isRTCP)
        guard let protected else { continue }
        if action & 32 != 0 {
            var forged = protected
            forged[input.choice(256) % forged.count] ^= 1 << UInt8(input.choice(8))
            let known = ends.sourceCount
            require(ends.unprotect(forged, room: 0, isRTCP: isRTCP) == nil, "a modified packet is refused")
            require(ends.sourceCount == known, "and makes no source known")
        }
        if let plain = ends.unprotect(protected, room: 0, isRTCP: isRTCP) {
            require(plain == packet, "a protected packet is restored")
        }
        require(ends.sourceCount <= 4, "sources are bounded")
        require(ends.unprotect(protected, room: 0, isRTCP: isRTCP) == nil, "a replay is refused")
        if action & 8 != 0 { ends.removeStream(SSRC(rawValue: input.uint32())) }
    }
}

/// A sender and a receiver of each backend, all with the same keys.
private struct Ends {
    private typealias Outcome = Result<[UInt8], SRTPError>

    private let engines: [SRTPEngine]
    private let senders: [any SRTPTransform]
    private let receivers: [any SRTPTransform]

    init(_ profile: SRTPProfile, allowsRepeatTransmission: Bool) {
        let length = profile.keyLength + profile.saltLength
        let near = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 7 + 3) }
        let far = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 5 + 1) }
        guard let ours = SRTPKeyingMaterial(profile: profile, local: near, remote: far),
            let theirs = SRTPKeyingMaterial(profile: profile, local: far, remote: near)
        else { fatalError("no keys") }
        let engines = unsafe allEngines
        self.engines = engines
        senders = engines.compactMap {
            try? $0.makeTransform(theirs, allowsRepeatTransmission: allowsRepeatTransmission)
        }
        receivers = engines.compactMap { try? $0.makeTransform(ours, sourcesMax: 4) }
        let count = SRTPBackend.available.count
        require(senders.count == count && receivers.count == count, "a transform of each backend")
    }

    var sourceCount: Int {
        let counts = Set(receivers.map(\.sourceCount))
        require(counts.count == 1, "the backends know the same number of sources: \(counts)")
        return counts.first ?? 0
    }

    func removeStream(_ ssrc: SSRC) {
        for receiver in receivers { receiver.removeStream(ssrc) }
    }

    func protect(_ packet: [UInt8], room: Int, isRTCP: Bool) -> [UInt8]? {
        agreed(senders.map { run($0, packet, room: room, isRTCP: isRTCP, isProtecting: true) })
    }

    func unprotect(_ packet: [UInt8], room: Int, isRTCP: Bool) -> [UInt8]? {
        agreed(receivers.map { run($0, packet, room: room, isRTCP: isRTCP, isProtecting: false) })
    }

    /// Protects an RTP packet with the handle, from a payload elsewhere.
    func protect(_ packet: [UInt8], rollOver: UInt32) -> [UInt8]? {
        var header: (length: Int, ssrc: SSRC, index: UInt64)?
        withSpan(packet) { span in
            guard let view = try? RTPPacketView(span) else { return }
            header = (view.headerLength, view.ssrc, UInt64(rollOver) << 16 | UInt64(view.sequenceNumber.rawValue))
        }
        guard let header else { return nil }
        return agreed(
            zip(engines, senders).map { engine, transform in
                let sender = transform.sender
                guard let stream = sender.stream(header.ssrc) else { return .failure(.tooManySources) }
                let payload = packet.dropFirst(header.length)
                let target = UnsafeMutableRawBufferPointer.allocate(
                    byteCount: packet.count + SRTPLimits.overheadBytesMax,
                    alignment: 1
                )
                defer { unsafe target.deallocate() }
                unsafe target.copyBytes(from: packet.prefix(header.length))
                guard let start = target.baseAddress else { return .failure(.failed) }
                let length = unsafe payload.withUnsafeBytes { payload in
                    unsafe sender.protectRTP(
                        stream,
                        start,
                        headerLength: header.length,
                        payload: payload.baseAddress ?? UnsafeRawPointer(start),
                        payloadLength: payload.count,
                        index: header.index
                    )
                }
                engine.flush()
                return unsafe length < 0 ? .failure(.failed) : .success(Array(target.prefix(length)))
            }
        )
    }

    private func agreed(_ outcomes: [Outcome]) -> [UInt8]? {
        for (outcome, backend) in zip(outcomes, SRTPBackend.available) {
            require(outcome == outcomes[0], "\(backend): \(outcome), \(SRTPBackend.available[0]): \(outcomes[0])")
        }
        return try? outcomes[0].get()
    }

    private func run(
        _ transform: any SRTPTransform,
        _ packet: [UInt8],
        room: Int,
        isRTCP: Bool,
        isProtecting: Bool
    ) -> Outcome {
        var reason = SRTPError.failed
        let bytes = inPlace(packet, room: room) { span, length in
            do throws(SRTPError) {
                return switch (isProtecting, isRTCP) {
                case (true, true): try transform.protectRTCP(&span, length: length)
                case (true, false): try transform.protectRTP(&span, length: length)
                case (false, true): try transform.unprotectRTCP(&span, length: length)
                case (false, false): try transform.unprotectRTP(&span, length: length)
                }
            } catch {
                reason = error
                return nil
            }
        }
        return bytes.map { .success($0) } ?? .failure(reason)
    }
}

/// Created once, because the multi-buffer backend runs a self-test for each engine. The fuzzer has one thread.
private nonisolated(unsafe) let allEngines = SRTPBackend.available.compactMap { try? SRTPEngine($0) }

/// Protects a copy of `packet` in a buffer of exactly `room` more bytes.
func protect(_ packet: [UInt8], room: Int, isRTCP: Bool, with transform: any SRTPTransform) -> [UInt8]? {
    inPlace(packet, room: room) { span, length in
        isRTCP
            ? try? transform.protectRTCP(&span, length: length) : try? transform.protectRTP(&span, length: length)
    }
}

/// Authenticates and decrypts a copy of `packet` in a buffer of exactly `room` more bytes.
func unprotect(_ packet: [UInt8], room: Int, isRTCP: Bool, with transform: any SRTPTransform) -> [UInt8]? {
    inPlace(packet, room: room) { span, length in
        isRTCP
            ? try? transform.unprotectRTCP(&span, length: length) : try? transform.unprotectRTP(&span, length: length)
    }
}

private func inPlace(_ packet: [UInt8], room: Int, _ body: (inout MutableRawSpan, Int) -> Int?) -> [UInt8]? {
    // A separate allocation, so that AddressSanitizer detects an access beyond its end.
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
            seed.byte(profile == 0 ? 0 : 1)
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
                seed.byte(2 + 16 + 32)
                seed.chunk(makeRTP(sequence: UInt16(number), payload: [UInt8](repeating: 5, count: 40)))
                seed.uint32(number)
                seed.byte(70)
                seed.byte(3)
                seed.byte(6)
                seed.chunk(makeRTP(payload: [UInt8](repeating: 9, count: 30)))
            }
        }
        return ("profile-\(profile)", bytes)
    }
}
