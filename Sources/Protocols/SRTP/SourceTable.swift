/// The state of one source.
protocol SourceState: BitwiseCopyable {
    var ssrc: UInt32 { get }
}

/// A hash table of states by SSRC. Each state is allocated separately and does not move until it is removed, so
/// pointers to it stay valid.
@safe
struct SourceTable<State: SourceState>: ~Copyable {
    /// Open addressing with linear probing. The slot count is a power of two, and at most half of the slots are used.
    private var slots: UnsafeMutablePointer<UnsafeMutablePointer<State>?>
    private var slotCount: Int
    private(set) var count = 0
    /// The state found last; packets of one source come in runs.
    private var last: UnsafeMutablePointer<State>?

    private static var slotsAtFirst: Int { 8 }

    init() {
        slotCount = Self.slotsAtFirst
        unsafe slots = Self.makeSlots(slotCount)
    }

    deinit {
        for slot in 0..<slotCount { unsafe slots[slot]?.deallocate() }
        unsafe slots.deallocate()
    }

    mutating func find(_ ssrc: UInt32) -> UnsafeMutablePointer<State>? {
        if let last = unsafe last, unsafe last.pointee.ssrc == ssrc { return unsafe last }
        var slot = home(ssrc)
        while let state = unsafe slots[slot] {
            if unsafe state.pointee.ssrc == ssrc {
                unsafe last = state
                return unsafe state
            }
            slot = (slot + 1) & (slotCount - 1)
        }
        return nil
    }

    /// Adds the state of a new source.
    mutating func insert(_ state: State) -> UnsafeMutablePointer<State> {
        if (count + 1) * 2 > slotCount { rebuild(slotCount * 2, without: nil) }
        let memory = UnsafeMutablePointer<State>.allocate(capacity: 1)
        unsafe memory.initialize(to: state)
        unsafe place(memory)
        count += 1
        unsafe last = memory
        return unsafe memory
    }

    /// Returns whether there was a state to remove.
    mutating func remove(_ ssrc: UInt32) -> Bool {
        guard let state = unsafe find(ssrc) else { return false }
        unsafe last = nil
        rebuild(slotCount, without: ssrc)
        count -= 1
        unsafe state.deallocate()
        return true
    }

    /// The multiplication spreads consecutive SSRCs. A peer that chooses colliding SSRCs slows down its own lookups
    /// only, bounded by the table size.
    private func home(_ ssrc: UInt32) -> Int { Int(ssrc &* 0x9E37_79B1 >> 16) & (slotCount - 1) }

    private func place(_ state: UnsafeMutablePointer<State>) {
        var slot = unsafe home(state.pointee.ssrc)
        while unsafe slots[slot] != nil { slot = (slot + 1) & (slotCount - 1) }
        unsafe slots[slot] = state
    }

    private mutating func rebuild(_ size: Int, without removed: UInt32?) {
        let old = unsafe slots
        let oldCount = slotCount
        slotCount = size
        unsafe slots = Self.makeSlots(size)
        for slot in 0..<oldCount {
            if let state = unsafe old[slot], unsafe state.pointee.ssrc != removed { unsafe place(state) }
        }
        unsafe old.deallocate()
    }

    private static func makeSlots(_ count: Int) -> UnsafeMutablePointer<UnsafeMutablePointer<State>?> {
        let slots = UnsafeMutablePointer<UnsafeMutablePointer<State>?>.allocate(capacity: count)
        unsafe slots.initialize(repeating: nil, count: count)
        return unsafe slots
    }
}
