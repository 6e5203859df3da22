import Base
internal import Floor
internal import SRTP
internal import Wire

/// Workloads that need a whole call.
extension Workloads {
    static func fanOutName(_ subscribers: Int, _ profile: SRTPProfile, _ backend: SRTPBackend) -> String {
        let what = subscribers == 0 ? "receive" : "fan-out \(subscribers)"
        return "\(what), \(name(profile)), \(backend.rawValue)"
    }

    /// Forwards one publisher's packets to a number of subscribers: decrypt, parse, store, and for each subscriber
    /// rewrite, encrypt and queue. The unit is a packet sent or, without subscribers, a packet received.
    static func fanOut(_ subscribers: Int, _ profile: SRTPProfile, _ backend: SRTPBackend) throws -> Workload {
        var shape = Call.Shape()
        shape.subscribers = subscribers
        shape.profile = profile
        shape.backend = backend
        return try forwarding(shape, name: fanOutName(subscribers, profile, backend))
    }

    /// Forwards one publisher's packets to subscribers on another loop, through the ring between the two loops.
    static func crossLoopFanOut(_ subscribers: Int) throws -> Workload {
        var shape = Call.Shape()
        shape.subscribers = subscribers
        shape.crossesLoops = true
        return try forwarding(shape, name: "other loop, fan-out \(subscribers)")
    }

    /// Forwards one publisher's packets to subscribers on another node: sealed once, opened and parsed there.
    static func crossNodeFanOut(_ subscribers: Int) throws -> Workload {
        var shape = Call.Shape()
        shape.subscribers = subscribers
        shape.crossesNodes = true
        return try forwarding(shape, name: "other node, fan-out \(subscribers)")
    }

    static func forwarding(_ shape: Call.Shape, name: String) throws -> Workload {
        let call = try Call(shape)
        try call.warmUp()
        let expected = shape.packetsPerTurn * shape.subscribers
        let floor = FanOutFloor(shape)
        return Workload(
            name,
            unitsPerRun: max(expected, shape.packetsPerTurn),
            prepare: { try call.prepareTurn() },
            finish: {
                call.finishTurn()
                let forwarded = call.takeForwarded()
                // Up to two of them are feedback to the publisher.
                guard forwarded >= expected, forwarded <= expected + 2 else {
                    throw CallError.broken("\(forwarded) datagrams left, not \(expected)")
                }
                call.serviceTurn()
                call.discardBatch()
            },
            floorPrepare: { floor.prepare() },
            floor: { floor.run() },
            { call.forwardTurn() }
        )
    }

    /// Answers the NACKs of many subscribers for the packets of the last turn. The unit is a retransmitted packet.
    static func retransmission(_ subscribers: Int, _ profile: SRTPProfile, _ backend: SRTPBackend) throws -> Workload {
        var shape = Call.Shape()
        shape.subscribers = subscribers
        shape.profile = profile
        shape.backend = backend
        let call = try Call(shape)
        try call.warmUp()
        let floor = RetransmissionFloor(shape)
        return Workload(
            retransmissionName(profile, backend),
            unitsPerRun: shape.packetsPerTurn * subscribers,
            prepare: { try call.prepareNACKs() },
            finish: { try call.finishNACKs() },
            floorPrepare: { floor.prepare() },
            floor: { floor.answer() },
            { call.forwardTurn() }
        )
    }

    static func retransmissionName(_ profile: SRTPProfile, _ backend: SRTPBackend) -> String {
        "NACK service, \(name(profile)), \(backend.rawValue)"
    }

    /// A second of a loop with many subscribers and no media, with a timer turn every 10 ms. The unit is a subscriber,
    /// which is sent one report in that second.
    static func timers(_ peers: Int) throws -> Workload {
        var shape = Call.Shape()
        shape.subscribers = peers
        let call = try Call(shape)
        try call.warmUp(turns: 60)
        let floor = unsafe nagare_timers_make(shape.profile.floorProfile, Int32(peers), 1_000_000_000, 0)
        var floorNow: Int64 = 0
        return Workload(
            timersName(peers),
            unitsPerRun: peers,
            prepare: { call.refresh() },
            floor: {
                for _ in 0..<100 {
                    floorNow += 10_000_000
                    _ = unsafe nagare_timers_turn(floor, floorNow)
                }
            },
            {
                for _ in 0..<100 {
                    call.advance(.milliseconds(10))
                    call.serviceTurn()
                    call.discardBatch()
                }
            }
        )
    }

    static func timersName(_ peers: Int) -> String { "timers, \(peers) peers" }
}

/// Turns of ``Workloads/fanOut(_:_:_:)`` in C, with the ring when the call crosses loops, and with another datagram that is
/// sealed and opened when it crosses nodes.
@safe
final class FanOutFloor {
    private let shape: Call.Shape
    private let turns: Int
    private let fanOut: OpaquePointer
    private let unprotect: OpaquePointer
    private let ring: OpaquePointer
    private let seal: OpaquePointer
    private let open: OpaquePointer
    private let history: UnsafeMutableRawPointer
    private let packet: [UInt8]
    private var index: UInt64 = 1

    /// - Parameter turns: those of one run.
    init(_ shape: Call.Shape, turns: Int = 1) {
        self.shape = shape
        self.turns = turns
        let engine = shape.backend.floorEngine
        unsafe fanOut = nagare_fan_out_make(shape.profile.floorProfile, engine, Int32(shape.subscribers), 1_024)
        unsafe unprotect = nagare_unprotect_make(
            shape.profile.floorProfile,
            engine,
            Int32(turns * shape.packetsPerTurn)
        )
        unsafe ring = nagare_ring_make(1 << 20)
        let cipher = SRTPProfile.aeadAES128GCM.floorProfile
        unsafe seal = nagare_fan_out_make(cipher, engine, 1, 1_024)
        unsafe open = nagare_unprotect_make(cipher, engine, Int32(turns * shape.packetsPerTurn))
        var maker = SyntheticPacket(ssrc: SSRC(rawValue: 1), payloadBytes: shape.payloadBytes)
        packet = maker.next()
        unsafe history = .allocate(byteCount: shape.packetsPerTurn * DatagramBatch.slotBytes, alignment: 64)
    }

    deinit {
        unsafe nagare_fan_out_free(fanOut)
        unsafe nagare_unprotect_free(unprotect)
        unsafe nagare_ring_free(ring)
        unsafe nagare_fan_out_free(seal)
        unsafe nagare_unprotect_free(open)
        unsafe history.deallocate()
    }

    func prepare() {
        unsafe nagare_unprotect_fill(unprotect, packet, SyntheticPacket.headerBytes, shape.payloadBytes)
        guard shape.crossesNodes else { return }
        unsafe nagare_unprotect_fill(open, packet, SyntheticPacket.headerBytes, shape.payloadBytes)
    }

    func run() {
        let authentic = unsafe nagare_unprotect_run(unprotect)
        precondition(authentic == turns * shape.packetsPerTurn, "the floor decrypts every packet")
        if shape.crossesNodes {
            let opened = unsafe nagare_unprotect_run(open)
            precondition(opened == turns * shape.packetsPerTurn, "the floor opens every datagram")
        }
        for _ in 0..<turns { turn() }
    }

    private func turn() {
        for place in 0..<shape.packetsPerTurn {
            var description = nagare_description()
            guard unsafe nagare_parse(packet, packet.count, &description) == 1 else { return }
            let kept = unsafe history + place * DatagramBatch.slotBytes
            if shape.crossesNodes {
                _ = unsafe nagare_fan_out_send(
                    seal,
                    packet,
                    SyntheticPacket.headerBytes,
                    shape.payloadBytes,
                    index
                )
            }
            if shape.crossesLoops {
                let size = MemoryLayout.size(ofValue: description)
                _ = unsafe nagare_ring_push(ring, &description, size, packet, packet.count)
                _ = unsafe nagare_ring_pop(ring, kept)
            } else {
                unsafe packet.withUnsafeBytes { bytes in
                    guard let start = bytes.baseAddress else { return }
                    unsafe kept.copyMemory(from: start, byteCount: bytes.count)
                }
            }
            if shape.subscribers > 0 {
                _ = unsafe nagare_fan_out_send(
                    fanOut,
                    packet,
                    SyntheticPacket.headerBytes,
                    shape.payloadBytes,
                    index
                )
            }
            index &+= 1
        }
        unsafe nagare_fan_out_flush(fanOut)
        if shape.crossesNodes { unsafe nagare_fan_out_flush(seal) }
    }
}

@safe
private final class RetransmissionFloor {
    private let floor: OpaquePointer
    private let packet: [UInt8]
    private let payloadBytes: Int
    private let units: Int

    init(_ shape: Call.Shape) {
        unsafe floor = nagare_retransmit_make(
            shape.profile.floorProfile,
            shape.backend.floorEngine,
            Int32(shape.subscribers),
            Int32(shape.packetsPerTurn)
        )
        var maker = SyntheticPacket(ssrc: SSRC(rawValue: 1), payloadBytes: shape.payloadBytes)
        packet = maker.next()
        payloadBytes = shape.payloadBytes
        units = shape.packetsPerTurn * shape.subscribers
    }

    deinit { unsafe nagare_retransmit_free(floor) }

    func prepare() { unsafe nagare_retransmit_fill(floor, packet, SyntheticPacket.headerBytes, payloadBytes) }
    func answer() {
        let sent = unsafe nagare_retransmit_run(floor)
        precondition(sent == units, "the floor answers every request")
    }
}

extension SRTPProfile {
    var floorProfile: Int32 { Int32(rawValue) }
}
