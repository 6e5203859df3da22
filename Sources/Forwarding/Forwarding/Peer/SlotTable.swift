import MediaTypes
import Wire

/// The slots of one peer, in the order in which they came: a few for a viewer of one publisher, hundreds in a large room.
struct SlotTable {
    private(set) var all: ContiguousArray<SendSlot> = []
    /// Every SSRC that a slot of the peer has or had.
    private(set) var usedSSRCs = SSRCMemory()
    private var bySSRC: [SSRC: SendSlot] = [:]
    private var byName: [MID: SendSlot] = [:]

    /// Up to here looking at each one is faster than hashing.
    private static let scannedMax = 8

    func slot(_ ssrc: SSRC) -> SendSlot? {
        guard all.count <= Self.scannedMax else { return bySSRC[ssrc] }
        return all.first { $0.parameters.ssrc == ssrc }
    }

    func slot(_ name: MID) -> SendSlot? {
        guard all.count <= Self.scannedMax else { return byName[name] }
        return all.first { $0.id.mid == name }
    }

    mutating func append(_ slot: SendSlot) {
        all.append(slot)
        for ssrc in slot.parameters.ssrcs { usedSSRCs.insert(ssrc) }
        bySSRC[slot.parameters.ssrc] = slot
        byName[slot.id.mid] = slot
    }

    /// Takes the slots of some names out, and returns them.
    mutating func remove(_ names: Set<MID>) -> [SendSlot] {
        let removed = all.filter { names.contains($0.id.mid) }
        guard !removed.isEmpty else { return [] }
        all.removeAll { names.contains($0.id.mid) }
        for slot in removed {
            bySSRC[slot.parameters.ssrc] = nil
            byName[slot.id.mid] = nil
        }
        return Array(removed)
    }
}
