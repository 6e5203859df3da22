import Base
internal import CongestionControl
internal import Counters
internal import Forwarding
internal import MediaTypes
internal import SRTP
internal import Wire

/// Workloads of congestion control toward subscribers.
extension Workloads {
    static var estimation: [Factory] {
        let calls = [10, 100, 200].map { subscribers in
            Factory(estimatedName(subscribers), isCollected: subscribers <= 10) { try estimated(subscribers) }
        }
        let halfLimited = [10, 100].map { subscribers in
            Factory(limitedName(subscribers), isCollected: subscribers <= 10) { try limited(subscribers) }
        }
        let allocations = [1, 9, 49].map { slots in
            Factory(allocationName(slots), unit: "slot") { allocation(slots) }
        }
        return calls + halfLimited + [
            Factory("report, transport-cc, 24 packets", unit: "report") { try feedbackReport() },
            Factory("controller, transport-cc, 50 packets", unit: "report") { transportFeedbackController() },
            Factory("controller, RFC 8888, 50 packets", unit: "report") { congestionControlFeedbackController() },
        ] + allocations
    }

    /// Bit/s below the rate of the video.
    private static let limit = 1_500_000

    private static func estimatedName(_ subscribers: Int) -> String { "estimated fan-out \(subscribers)" }
    private static func limitedName(_ subscribers: Int) -> String { "half limited fan-out \(subscribers)" }

    /// Forwards one publisher's packets to subscribers whose reports decide how much they are sent. Beside it the same without
    /// estimation, allocation, pacing and reports. The unit is a packet sent.
    private static func estimated(_ subscribers: Int) throws -> Workload {
        try forwarding(subscribers, limit: nil, name: estimatedName(subscribers))
    }

    /// The same with every second subscriber limited to less than the video's rate, so that its packets are paced.
    private static func limited(_ subscribers: Int) throws -> Workload {
        try forwarding(subscribers, limit: limit, name: limitedName(subscribers))
    }

    private static func forwarding(_ subscribers: Int, limit: Int?, name: String) throws -> Workload {
        var shape = Call.Shape()
        shape.subscribers = subscribers
        let plain = try periods(shape, name: name, slack: 0)
        let floor = FanOutFloor(shape, turns: Call.turnsPerReport)
        shape.isEstimating = true
        shape.limit = limit
        return try periods(shape, name: name, slack: 3 * subscribers, floor: floor, plain: plain)
    }

    private static func periods(
        _ shape: Call.Shape,
        name: String,
        slack: Int,
        floor: FanOutFloor? = nil,
        plain: Workload? = nil
    ) throws -> Workload {
        let call = try Call(shape)
        try call.warmUpPeriods()
        return Workload(
            name,
            unitsPerRun: call.forwardedPerPeriod,
            prepare: { try call.preparePeriod() },
            finish: { try call.finishPeriod(slack: slack) },
            floorPrepare: { floor?.prepare() },
            floor: floor.map { floor in { floor.run() } },
            plain: plain,
            { call.forwardPeriod() }
        )
    }

    /// Takes a report of each subscriber: decrypt, parse, match, control, and allocate and pace if the rate changed.
    private static func feedbackReport() throws -> Workload {
        var shape = Call.Shape()
        shape.subscribers = 16
        shape.isEstimating = true
        let call = try Call(shape)
        try call.warmUpPeriods()
        return Workload(
            "report, transport-cc, 24 packets",
            unitsPerRun: shape.subscribers,
            prepare: {
                try call.preparePeriod()
                call.forwardMedia()
            },
            finish: { try call.finishPeriod(slack: 0) },
            { call.receiveReports() }
        )
    }

    /// Bytes of the heap that a viewer takes of a forwarder after some seconds of media, with and without estimation.
    package static func viewerMemory() throws -> (estimating: Double, plain: Double) {
        func measure(_ isEstimating: Bool) throws -> Double {
            var shape = Call.Shape()
            shape.isEstimating = isEstimating
            shape.limit = isEstimating ? limit : nil
            let before = nagare_heap_bytes()
            let call = try Call(shape)
            try call.warmUpPeriods()
            // The viewers' own.
            call.reporters = []
            return withExtendedLifetime(call) {
                Double(nagare_heap_bytes() - before) / Double(shape.subscribers)
            }
        }
        return (try measure(true), try measure(false))
    }

    // MARK: - The controller alone

    /// Reads a report of 50 packets and lets the controller decide.
    private static func transportFeedbackController() -> Workload {
        let path = ReportedPath()
        var reader = TransportFeedbackReader()
        var generator = TransportFeedbackGenerator()
        var writer = RTCPWriter()
        return Workload(
            "controller, transport-cc, 50 packets",
            unitsPerRun: 1,
            prepare: {
                path.send {
                    generator.received(TransportSequenceNumber(rawValue: UInt16(truncatingIfNeeded: $0)), at: $1)
                }
                writer.removeAll()
                _ = generator.makeFeedback(
                    at: Instant(nanoseconds: path.now * 1_000),
                    writer: &writer,
                    senderSSRC: SSRC(rawValue: 7),
                    mediaSSRC: SSRC(rawValue: 8)
                )
                path.take(writer.bytes)
            },
            finish: { try path.check() },
            {
                path.withPacket { packet in
                    guard let cursor = packet.makeTransportFeedbackCursor() else { return }
                    path.received { report in
                        reader.read(cursor, newest: path.newest, at: path.now, into: &report) { path.record($0) }
                    }
                }
            }
        )
    }

    /// The same with congestion control feedback (RFC 8888), which names packets by their RTP numbers.
    private static func congestionControlFeedbackController() -> Workload {
        let path = ReportedPath()
        var reader = CongestionControlFeedbackReader()
        var arrivals: [(number: Int64, at: Instant)] = []
        return Workload(
            "controller, RFC 8888, 50 packets",
            unitsPerRun: 1,
            prepare: {
                arrivals.removeAll(keepingCapacity: true)
                path.send { arrivals.append(($0, $1)) }
                path.take(congestionControlFeedback(arrivals, at: Instant(nanoseconds: path.now * 1_000)))
            },
            finish: { try path.check() },
            {
                path.withPacket { packet in
                    guard let cursor = packet.makeCongestionControlFeedbackCursor() else { return }
                    path.received { report in
                        reader.read(cursor, newest: path.newest, at: path.now, into: &report) { _, sequence in
                            let age = UInt16(truncatingIfNeeded: path.newest) &- sequence.rawValue
                            let number = path.newest - Int64(age)
                            return path.record(number).map { (number, $0) }
                        }
                    }
                }
            }
        )
    }

    /// A report about one stream (RFC 8888 §3.1).
    private static func congestionControlFeedback(_ arrivals: [(number: Int64, at: Instant)], at now: Instant)
        -> [UInt8]
    {
        var bytes: [UInt8] = []
        let words = 5 + (arrivals.count + 1) / 2
        bytes.append(bigEndian: 0x8000_0000 | 11 << 24 | 205 << 16 | UInt32(words - 1))
        bytes.append(bigEndian: 7 as UInt32)
        bytes.append(bigEndian: 8 as UInt32)
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: arrivals.first?.number ?? 0))
        bytes.append(bigEndian: UInt16(arrivals.count))
        for (_, at) in arrivals {
            let offset = (now - at).nanoseconds * 1_024 / 1_000_000_000
            bytes.append(bigEndian: 0x8000 | UInt16(min(max(offset, 0), 0x1FFD)))
        }
        if arrivals.count % 2 == 1 { bytes.append(bigEndian: 0 as UInt16) }
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: now.nanoseconds / 1_000 * 65_536 / 1_000_000))
        return bytes
    }

    // MARK: - Allocation

    private static func allocationName(_ slots: Int) -> String {
        "allocation, \(slots) \(slots == 1 ? "slot" : "slots")"
    }

    /// Divides a rate that swings by a few per cent over slots with three encodings of three temporal layers each.
    private static func allocation(_ slots: Int) -> Workload {
        let sizes = [(150_000, 320, 180), (500_000, 640, 360), (2_500_000, 1_280, 720)]
        let encodings = sizes.enumerated().map { index, size in
            let (bitrate, width, height) = size
            var encoding = LayerTable.Encoding(
                stream: UInt64(index + 1),
                place: index,
                bitrate: bitrate,
                isFlowing: true
            )
            for (temporalID, percent) in [40, 20, 40].enumerated() {
                encoding.layers[temporalID] = bitrate * percent / 100
            }
            encoding.layers.setSize(ofSpatial: 0, width: width, height: height)
            return encoding
        }
        let table = LayerTable(encodings: encodings)
        let requests = (0..<slots).map { slot in
            LayerRequest(
                id: SSRC(rawValue: UInt32(slot + 1)),
                preference: LayerPreference(),
                table: table,
                isPlaying: true
            )
        }
        var allocator = LayerAllocator()
        var now = Instant(nanoseconds: 1_000_000_000)
        var count = 0
        var allocated = 0
        let calls = max(1, 48 / slots)
        return Workload(
            allocationName(slots),
            unitsPerRun: calls * slots,
            finish: { guard allocated > 0 else { throw CallError.broken("nothing is allocated") } },
            {
                for _ in 0..<calls {
                    count += 1
                    now += .milliseconds(100)
                    let rate = slots * 600_000 * (95 + count * 7 % 11) / 100
                    allocated = allocator.allocate(requests, rate: .limited(bitsPerSecond: rate), at: now).allocated
                }
            }
        )
    }
}
