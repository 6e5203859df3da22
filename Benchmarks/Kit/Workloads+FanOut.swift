internal import Floor
package import SRTP
package import Wire

extension Workloads {
    static func fanOutName(_ subscribers: Int, _ profile: SRTPProfile, _ backend: SRTPBackend) -> String {
        let what = subscribers == 0 ? "receive" : "fan-out \(subscribers)"
        return "\(what), \(name(profile)), \(backend.rawValue)"
    }

    /// One publisher's packets to a number of subscribers: decrypt, parse, keep, and for each subscriber rewrite,
    /// encrypt and queue. The unit is a packet that leaves or, without subscribers, one that arrives.
    package static func fanOut(
        subscribers: Int,
        _ profile: SRTPProfile,
        _ backend: SRTPBackend
    ) throws -> Workload {
        var shape = Call.Shape()
        shape.subscribers = subscribers
        shape.profile = profile
        shape.backend = backend
        let call = try Call(shape)
        try call.warmUp()
        let expected = shape.packetsPerTurn * subscribers
        let floor = FanOutFloor(shape)
        return Workload(
            fanOutName(subscribers, profile, backend),
            unit: "packet",
            unitsPerRun: max(expected, shape.packetsPerTurn),
            prepare: { try call.prepareTurn() },
            finish: {
                call.finishTurn()
                let forwarded = call.takeForwarded()
                // Feedback to the publisher may be among them.
                guard forwarded >= expected, forwarded <= expected + 2 else {
                    throw CallError.broken("\(forwarded) datagrams left where \(expected) were to")
                }
                call.serviceTurn()
                call.discardBatch()
            },
            floorPrepare: { floor.prepare() },
            floor: { floor.turn() },
            { call.forwardTurn() }
        )
    }
}

/// The work of a turn of ``Workloads/fanOut(subscribers:_:_:)`` in C.
@safe
private final class FanOutFloor {
    private let fanOut: OpaquePointer
    private let unprotect: OpaquePointer
    private let history: UnsafeMutableRawPointer
    private let packet: [UInt8]
    private let payloadBytes: Int
    private let packets: Int
    private let subscribers: Int
    private var index: UInt64 = 1

    init(_ shape: Call.Shape) {
        let engine = shape.backend.floorEngine
        subscribers = shape.subscribers
        unsafe fanOut = nagare_fan_out_make(shape.profile.floorProfile, engine, Int32(shape.subscribers), 1_024)
        unsafe unprotect = nagare_unprotect_make(shape.profile.floorProfile, engine, Int32(shape.packetsPerTurn))
        var maker = SyntheticPacket(ssrc: SSRC(rawValue: 1), payloadBytes: shape.payloadBytes)
        packet = maker.next()
        unsafe history = .allocate(byteCount: shape.packetsPerTurn * DatagramBatch.slotBytes, alignment: 64)
        payloadBytes = shape.payloadBytes
        packets = shape.packetsPerTurn
    }

    deinit {
        unsafe nagare_fan_out_free(fanOut)
        unsafe nagare_unprotect_free(unprotect)
        unsafe history.deallocate()
    }

    func prepare() { unsafe nagare_unprotect_fill(unprotect, packet, SyntheticPacket.headerBytes, payloadBytes) }

    func turn() {
        _ = unsafe nagare_unprotect_run(unprotect)
        for place in 0..<packets {
            var description = nagare_description()
            guard unsafe nagare_parse(packet, packet.count, &description) == 1 else { return }
            unsafe packet.withUnsafeBytes { bytes in
                guard let start = bytes.baseAddress else { return }
                unsafe (history + place * DatagramBatch.slotBytes).copyMemory(from: start, byteCount: bytes.count)
            }
            if subscribers > 0 {
                _ = unsafe nagare_fan_out_send(fanOut, packet, SyntheticPacket.headerBytes, payloadBytes, index)
            }
            index &+= 1
        }
        unsafe nagare_fan_out_flush(fanOut)
    }
}

extension SRTPProfile {
    var floorProfile: Int32 { Int32(rawValue) }
}
