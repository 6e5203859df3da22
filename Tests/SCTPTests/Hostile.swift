import Base
import TestSupport

@testable import SCTP

/// A packet with valid checksum.
func packet(_ chunks: [[UInt8]], tag: UInt32, port: UInt16 = 5_000) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: port)
    bytes.append(bigEndian: port)
    bytes.append(bigEndian: tag)
    bytes.append(bigEndian: UInt32(0))
    for chunk in chunks { bytes += chunk }
    let checksum = withSpan(bytes) { PacketLayout.checksum($0) }
    for index in 0..<4 { bytes[8 + index] = UInt8(truncatingIfNeeded: checksum >> (24 - 8 * index)) }
    return bytes
}

/// An I-DATA chunk, or with `isInterleaved: false` a DATA chunk.
func data(
    _ tsn: Int64,
    on number: UInt16 = 0,
    message: UInt32 = 0,
    fragment: UInt32 = 0,
    _ flags: DataFlags = [.beginning, .end],
    count: Int = 10,
    isInterleaved: Bool = true
) -> [UInt8] {
    var value: [UInt8] = []
    value.append(bigEndian: SerialNumber.raw(tsn))
    value.append(bigEndian: number)
    if isInterleaved {
        value.append(bigEndian: UInt16(0))
        value.append(bigEndian: message)
        value.append(bigEndian: flags.contains(.beginning) ? 53 : fragment)
    } else {
        value.append(bigEndian: UInt16(truncatingIfNeeded: message))
        value.append(bigEndian: UInt32(53))
    }
    value += [UInt8](repeating: 1, count: count)
    return .chunk(isInterleaved ? .interleavedData : .data, flags: flags.rawValue, value)
}

/// A connected node, the victim, and what a hostile peer knows: the tag and the next number.
struct Scene {
    let pair: Pair
    var victim: Node { pair.right }
    var tag: UInt32 { pair.left.association.peer?.tag ?? 0 }
    var tsn: Int64 { pair.right.association.receiver.numbers.cumulative + 1 }

    var hasEnded: Bool { victim.association.hasEnded }

    init(isInterleaved: Bool = true) {
        var settings = AssociationSettings()
        settings.offersInterleaving = isInterleaved
        pair = .connected(left: settings, right: settings)
    }

    /// Gives the victim a packet.
    /// - Returns: the steps of work that it caused.
    @discardableResult
    func attack(_ chunks: [[UInt8]]) -> Int {
        let before = victim.association.workSteps
        victim.receive(packet(chunks, tag: tag), at: pair.now)
        return Int(victim.association.workSteps - before)
    }

    /// Lets time pass for the victim, of which the other end receives nothing.
    func wait(_ interval: Interval) {
        pair.loses = { _, _ in true }
        pair.run(for: interval)
    }

    /// Takes what the victim sends, which nobody receives.
    func drain() {
        while victim.nextPacket(at: pair.now) != nil {}
    }
}
