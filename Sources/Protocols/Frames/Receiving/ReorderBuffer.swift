import Base
import Wire

/// Puts the packets of one stream into the order of their sequence numbers, and waits for missing ones for a while.
///
/// The packets wait in a ring, each at its number's place, so that neither order nor holes make a packet cost more than the
/// hole's length.
struct ReorderBuffer {
    /// What comes next.
    enum Release {
        case packet(ReceivedPacket)
        /// So many packets in front of the next one will not come; 0 where their number is not known.
        case lost(Int)
    }

    private var ring: [ReceivedPacket?] = Array(repeating: nil, count: 64)
    /// The number of the next packet.
    private var next: Int64 = 0
    /// The greatest number that waits.
    private var newest: Int64 = 0
    private var count = 0
    private var bytes = 0
    private var isStarted = false
    /// The numbers have jumped.
    private var hasJumped = false

    private func place(_ number: Int64) -> Int { Int(number & Int64(ring.count - 1)) }

    /// Takes a packet. One that came already, or too late, is left out.
    mutating func insert(_ packet: ReceivedPacket) {
        let number = packet.sequence.rawValue
        if !isStarted { (isStarted, next, newest) = (true, number, number) }
        let distance = number &- next
        guard distance > -Int64(ReceiveLimits.waitingPacketsMax), distance < Int64(ReceiveLimits.waitingPacketsMax)
        else {
            restart(at: packet)
            return
        }
        guard distance >= 0 else { return }
        while distance >= Int64(ring.count) { grow() }
        let place = place(number)
        guard ring[place] == nil else { return }
        ring[place] = packet
        count += 1
        bytes += packet.payload.count
        newest = max(newest, number)
    }

    /// The source began anew with other numbers.
    private mutating func restart(at packet: ReceivedPacket) {
        let number = packet.sequence.rawValue
        ring = Array(repeating: nil, count: 64)
        (next, newest, count, bytes, hasJumped) = (number, number, 1, packet.payload.count, true)
        ring[place(number)] = packet
    }

    private mutating func grow() {
        var larger: [ReceivedPacket?] = Array(repeating: nil, count: ring.count * 2)
        for packet in ring {
            guard let packet else { continue }
            larger[Int(packet.sequence.rawValue & Int64(larger.count - 1))] = packet
        }
        ring = larger
    }

    /// The next packet, or the loss in front of it.
    /// - Parameter patience: how long a missing packet is waited for, from the arrival of one behind it.
    mutating func take(at now: Instant, patience: Interval) -> Release? {
        guard count > 0 else { return nil }
        if hasJumped {
            hasJumped = false
            return .lost(0)
        }
        if let packet = ring[place(next)] {
            ring[place(next)] = nil
            next &+= 1
            count -= 1
            bytes -= packet.payload.count
            return .packet(packet)
        }
        guard let following else { return nil }
        let isFull = count >= ReceiveLimits.waitingPacketsMax || bytes > ReceiveLimits.waitingBytesMax
        guard isFull || now - following.arrivedAt >= patience else { return nil }
        let missing = Int(following.sequence.rawValue &- next)
        next = following.sequence.rawValue
        return .lost(missing)
    }

    /// When the next missing packet counts as lost; `nil` while none is missing.
    func deadline(patience: Interval) -> Instant? {
        guard count > 0, !hasJumped, ring[place(next)] == nil else { return nil }
        return following.map { $0.arrivedAt + patience }
    }

    /// The first packet behind a hole.
    private var following: ReceivedPacket? {
        var number = next &+ 1
        while number <= newest {
            if let packet = ring[place(number)] { return packet }
            number &+= 1
        }
        return nil
    }
}
