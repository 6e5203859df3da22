import Base
internal import CongestionControl
internal import Floor
internal import Forwarding
internal import SRTP
internal import Wire

/// Workloads that need no call.
extension Workloads {
    private static let count = 256

    private static func packets(_ count: Int) -> [[UInt8]] {
        var maker = SyntheticPacket(ssrc: SSRC(rawValue: 1), payloadBytes: 1_100)
        return (0..<count).map { _ in maker.next() }
    }

    static func unprotectName(_ profile: SRTPProfile, _ backend: SRTPBackend) -> String {
        "unprotect, \(name(profile)), \(backend.rawValue)"
    }

    /// Authenticates and decrypts packets in place.
    static func unprotect(_ profile: SRTPProfile, _ backend: SRTPBackend) throws -> Workload {
        let length = profile.keyLength + profile.saltLength
        let near = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 7 + 3) }
        let far = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 5 + 1) }
        guard let ours = SRTPKeyingMaterial(profile: profile, local: near, remote: far),
            let theirs = SRTPKeyingMaterial(profile: profile, local: far, remote: near)
        else { throw CallError.broken("keys of the profile's length are refused") }
        let receiver = try SRTPEngine(backend).makeTransform(ours)
        let sender = try SRTPEngine(.openssl).makeTransform(theirs)
        var maker = SyntheticPacket(ssrc: SSRC(rawValue: 1), payloadBytes: 1_100)
        let slots = UnsafeMutableRawBufferPointer.allocate(
            byteCount: count * DatagramBatch.slotBytes,
            alignment: 64
        )
        var received = 0
        var protectedBytes = 0
        let floor = unsafe nagare_unprotect_make(profile.floorProfile, backend.floorEngine, Int32(count))
        let plain = packets(1)[0]
        return Workload(
            unprotectName(profile, backend),
            unitsPerRun: count,
            prepare: {
                for index in 0..<count {
                    let packet = try inPlace(maker.next()) { span, length throws(SRTPError) in
                        try sender.protectRTP(&span, length: length)
                    }
                    let start = index * DatagramBatch.slotBytes
                    unsafe UnsafeMutableRawBufferPointer(rebasing: slots[start..<start + packet.count])
                        .copyBytes(from: packet)
                    protectedBytes = packet.count
                }
                received = 0
            },
            finish: {
                guard received == count else { throw CallError.broken("\(received) of \(count) packets decrypt") }
            },
            floorPrepare: {
                unsafe nagare_unprotect_fill(floor, plain, SyntheticPacket.headerBytes, 1_100)
            },
            floor: { precondition(unsafe nagare_unprotect_run(floor) == count, "the floor decrypts every packet") },
            {
                for index in 0..<count {
                    let start = index * DatagramBatch.slotBytes
                    let slot = unsafe UnsafeMutableRawBufferPointer(
                        rebasing: slots[start..<start + DatagramBatch.slotBytes]
                    )
                    var span = unsafe slot.mutableBytes
                    if (try? receiver.unprotectRTP(&span, length: protectedBytes)) != nil { received += 1 }
                }
            }
        )
    }

    /// Parses the fields of a VP8 packet that forwarding needs.
    static func parse() -> Workload {
        // The packets are in one buffer, so that iterating over them counts no references.
        let packets = Self.packets(count)
        let stride = packets[0].count
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: count * stride, alignment: 64)
        unsafe bytes.copyBytes(from: packets.joined())
        let extensions = SyntheticPacket.extensions
        let now = Instant(nanoseconds: 1)
        // Both parsers add to it, so that the optimiser removes neither.
        var sum = 0
        return Workload(
            "parse",
            unitsPerRun: count,
            finish: { guard sum != 0 else { throw CallError.broken("nothing was parsed") } },
            floor: {
                for index in 0..<count {
                    var description = nagare_description()
                    if unsafe nagare_parse(bytes.baseAddress! + index * stride, stride, &description) == 1 {
                        sum &+= Int(description.picture_id) &+ Int(description.payload_length)
                    }
                }
            },
            {
                for index in 0..<count {
                    let packet = unsafe UnsafeRawBufferPointer(rebasing: bytes[index * stride..<(index + 1) * stride])
                    guard let view = try? RTPPacketView(unsafe packet.bytes),
                        let description = PacketDescription(
                            view,
                            sequence: ExtendedSequenceNumber(rawValue: 1),
                            codec: .vp8,
                            extensions: extensions,
                            at: now
                        )
                    else { continue }
                    sum &+= Int(description.pictureID) &+ Int(description.payloadLength)
                }
            }
        )
    }

    /// Records arrivals and writes transport-wide feedback about them.
    static func transportFeedback() -> Workload {
        var generator = TransportFeedbackGenerator()
        var writer = RTCPWriter()
        var number: UInt16 = 0
        var floorNumber: UInt16 = 0
        var now = Instant(nanoseconds: 1_000_000_000)
        var arrivals = nagare_arrivals()
        let target = UnsafeMutablePointer<UInt8>.allocate(capacity: 1_500)
        return Workload(
            "feedback, transport-wide",
            unitsPerRun: 100,
            floor: {
                for _ in 0..<100 {
                    floorNumber &+= 1
                    unsafe nagare_arrived(&arrivals, floorNumber, Int64(floorNumber) * 4)
                }
                // The first feedback starts at number 0, which it reports as received.
                precondition(unsafe nagare_transport_feedback(&arrivals, target) > 100)
            },
            {
                for _ in 0..<100 {
                    generator.received(TransportSequenceNumber(rawValue: number), at: now)
                    number &+= 1
                    now += .milliseconds(1)
                }
                writer.removeAll()
                _ = generator.makeFeedback(
                    at: now,
                    writer: &writer,
                    senderSSRC: SSRC(rawValue: 1),
                    mediaSSRC: SSRC(rawValue: 2)
                )
            }
        )
    }

    /// Records arrivals of which one in eight is missing, and writes NACKs for the missing packets.
    static func lossDetection() -> Workload {
        var tracker = NACKTracker()
        var writer = RTCPWriter()
        var lost: [SequenceNumber] = []
        var sequence: Int64 = 0x1_0000
        var now = Instant(nanoseconds: 1_000_000_000)
        var arrivals = nagare_arrivals()
        var floorNumber: UInt16 = 0
        let target = UnsafeMutablePointer<UInt8>.allocate(capacity: 1_500)
        return Workload(
            "feedback, NACK",
            unitsPerRun: 64,
            finish: {
                guard lost.count == 8 else { throw CallError.broken("NACKs for \(lost.count) packets, not for 8") }
                // The missing packets arrive, so that the next run starts without them.
                for number in 0..<8 {
                    _ = tracker.received(ExtendedSequenceNumber(rawValue: sequence - 57 + Int64(number) * 8), at: now)
                }
                lost.removeAll(keepingCapacity: true)
            },
            floor: {
                for number in 0..<65 as Range<UInt16> where number % 8 != 7 {
                    unsafe nagare_arrived(&arrivals, floorNumber &+ number, 0)
                }
                floorNumber &+= 64
                precondition(unsafe nagare_nack_missing(&arrivals, target) == 24)
            },
            {
                for number in 0..<65 where number % 8 != 7 {
                    _ = tracker.received(ExtendedSequenceNumber(rawValue: sequence + Int64(number)), at: now)
                }
                sequence += 64
                now += .milliseconds(10)
                _ = tracker.takeRequests(at: now, into: &lost)
                writer.removeAll()
                writer.appendNACK(sender: SSRC(rawValue: 1), media: SSRC(rawValue: 2), lost: lost)
            }
        )
    }

    /// Writes a sender report with its source description.
    static func report() -> Workload {
        var writer = RTCPWriter()
        let target = UnsafeMutablePointer<UInt8>.allocate(capacity: 1_500)
        return Workload(
            "feedback, report",
            unitsPerRun: 100,
            floor: {
                for index in 0..<100 as Range<UInt32> {
                    _ = unsafe nagare_report(index, 7, index, index, index, "stream", target)
                }
            },
            {
                for index in 0..<100 as Range<UInt32> {
                    writer.removeAll()
                    let info = SenderInfo(
                        ntp: NTPTimestamp(rawValue: 7),
                        rtp: RTPTimestamp(rawValue: index),
                        packetCount: index,
                        octetCount: index
                    )
                    writer.appendSenderReport(sender: SSRC(rawValue: index), info: info)
                    writer.appendSourceDescription(ssrc: SSRC(rawValue: index), cname: "stream")
                }
            }
        )
    }

    /// Appends packets to the ring between two loops and drains it, on one thread.
    static func ring() -> Workload {
        struct Record: BitwiseCopyable, Sendable {
            var words: [16 of UInt64] = .init(repeating: 7)
        }
        let ring = LoopRing<Record>()
        let floor = unsafe nagare_ring_make(1 << 20)
        let packet = packets(1)[0]
        let target = UnsafeMutableRawPointer.allocate(byteCount: 2_048, alignment: 64)
        var taken = 0
        return Workload(
            "ring",
            unitsPerRun: 64,
            prepare: { taken = 0 },
            finish: { guard taken == 64 else { throw CallError.broken("\(taken) of 64 packets were drained") } },
            floor: {
                var record = Record()
                for _ in 0..<64 {
                    _ = unsafe nagare_ring_push(floor, &record, MemoryLayout<Record>.size, packet, packet.count)
                }
                while unsafe nagare_ring_pop(floor, target) > 0 {}
            },
            {
                let record = Record()
                for _ in 0..<64 { _ = ring.append(record, unsafe packet.span.bytes) }
                _ = ring.publish()
                taken = ring.drain(64) { record, bytes in
                    unsafe target.storeBytes(of: record, as: Record.self)
                    unsafe bytes.withUnsafeBytes { bytes in
                        guard let start = bytes.baseAddress else { return }
                        unsafe (target + MemoryLayout<Record>.size).copyMemory(from: start, byteCount: bytes.count)
                    }
                }
            }
        )
    }
}
