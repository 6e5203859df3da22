internal import Floor
package import Wire

/// The forwarding path in pieces.
package enum Workloads {
    static func name(_ profile: SRTPProfile) -> String {
        switch profile {
        case .aeadAES128GCM: "gcm-128"
        case .aeadAES256GCM: "gcm-256"
        case .aes128CMHMACSHA1: "cm-sha1-80"
        }
    }

    /// Every profile with every backend that is here.
    package static var suites: [(SRTPProfile, Backend)] {
        Backend.available.flatMap { backend in
            [SRTPProfile.aeadAES128GCM, .aeadAES256GCM, .aes128CMHMACSHA1].map { ($0, backend) }
        }
    }

    /// One publisher's packets to a number of subscribers: decrypt, parse, keep, and for each subscriber rewrite,
    /// encrypt and queue. The unit is a packet that leaves.
    package static func fanOut(
        subscribers: Int,
        _ profile: SRTPProfile,
        _ backend: Backend
    ) throws -> Workload {
        var shape = Call.Shape()
        shape.subscribers = subscribers
        shape.profile = profile
        shape.backend = backend
        let call = try Call(shape)
        try call.warmUp(turns: 90)
        let expected = shape.packetsPerTurn * subscribers
        let floor = FanOutFloor(shape)
        return Workload(
            "fan-out \(subscribers), \(name(profile)), \(backend.rawValue)",
            unit: "packet",
            unitsPerRun: expected,
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
final class FanOutFloor {
    private let fanOut: OpaquePointer
    private let unprotect: OpaquePointer
    private let packet: [UInt8]
    private let payloadBytes: Int
    private let packets: Int
    private var index: UInt64 = 1

    init(_ shape: Call.Shape) {
        let engine = shape.backend.floorEngine
        unsafe fanOut = nagare_fan_out_make(shape.profile.floorProfile, engine, Int32(shape.subscribers), 1_024)
        unsafe unprotect = nagare_unprotect_make(shape.profile.floorProfile, engine, Int32(shape.packetsPerTurn))
        var maker = SyntheticPacket(ssrc: SSRC(rawValue: 1), payloadBytes: shape.payloadBytes)
        packet = maker.next()
        payloadBytes = shape.payloadBytes
        packets = shape.packetsPerTurn
    }

    deinit {
        unsafe nagare_fan_out_free(fanOut)
        unsafe nagare_unprotect_free(unprotect)
    }

    func prepare() { unsafe nagare_unprotect_fill(unprotect, packet, SyntheticPacket.headerBytes, payloadBytes) }

    func turn() {
        _ = unsafe nagare_unprotect_run(unprotect)
        for _ in 0..<packets {
            _ = unsafe nagare_fan_out_send(fanOut, packet, SyntheticPacket.headerBytes, payloadBytes, index)
            index &+= 1
        }
        unsafe nagare_fan_out_flush(fanOut)
    }
}

extension SRTPProfile {
    var floorProfile: Int32 { Int32(rawValue) }
}
