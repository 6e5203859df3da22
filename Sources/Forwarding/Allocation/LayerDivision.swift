import MediaTypes
import Wire

/// Divides a budget over the ladders of a receiver's slots. It knows no time: the same ladders and budget give the same
/// result, in whatever order the slots come.
///
/// Steps are funded in one order that does not depend on the budget: the lowest step of every slot, the most important slots
/// first; then what the slots' importance asks for at least; then the rest by weighted utility for each bit/s. A step that
/// does not fit ends the climb of all slots of its importance, so a higher budget never lowers one of them for another. Less
/// important slots may use what is left.
struct LayerDivision: Sendable {
    private var entries: [Entry] = []

    /// One step of one slot.
    private struct Entry {
        /// Lower ones are funded first.
        let group: Int
        /// Of one group higher ones are funded first.
        let merit: Double
        let importance: SlotImportance
        let slot: Int
        let step: Int
        let id: UInt32
        /// On top of the step below.
        let cost: Int

        static func precedes(_ left: Self, _ right: Self) -> Bool {
            if left.group != right.group { return left.group < right.group }
            if left.merit != right.merit { return left.merit > right.merit }
            if left.importance != right.importance { return left.importance > right.importance }
            if left.step != right.step { return left.step < right.step }
            return left.id < right.id
        }
    }

    /// The merit of a step that the slot has counts this much more, so that a small change of costs moves no layer from one
    /// slot to another.
    private static let heldFactor = 1.25

    /// Puts the steps of the ladders in order.
    /// - Parameter held: how many steps each slot has now.
    init(_ ladders: LayerLadders, held: [Int] = []) { order(ladders, held: held) }

    mutating func order(_ ladders: LayerLadders, held: [Int]) {
        entries.removeAll(keepingCapacity: true)
        for slot in ladders.ladders.indices {
            let ladder = ladders.ladders[slot]
            let heldCount = slot < held.count ? held[slot] : 0
            let rank = Int(SlotImportance.stage.rawValue - ladder.importance.rawValue)
            var below = 0
            for step in 0..<ladder.steps.count {
                let layers = ladders.steps[ladder.steps.lowerBound + step]
                var group = rank
                var merit = -Double(layers.cost)
                if step == 0 {
                    if heldCount > 0 { merit += 1e12 }
                } else {
                    let isMinimum = step < ladder.minimum
                    group = isMinimum ? 4 + rank : 8
                    merit = layers.slope * (isMinimum ? 1 : LayerUtility.weight(of: ladder.importance))
                    if step < heldCount { merit *= Self.heldFactor }
                }
                entries.append(
                    Entry(
                        group: group,
                        merit: merit,
                        importance: ladder.importance,
                        slot: slot,
                        step: step,
                        id: ladder.id.rawValue,
                        cost: layers.cost - below
                    )
                )
                below = layers.cost
            }
        }
        entries.sort(by: Entry.precedes)
    }

    /// Funds steps within the budget, and in any case the cheapest one of the most important slot: without video nothing
    /// would tell what the path carries.
    /// - Parameter funded: replaced by how many steps of its ladder each slot gets.
    func divide(_ budget: Int, over count: Int, into funded: inout [Int]) {
        funded.removeAll(keepingCapacity: true)
        for _ in 0..<count { funded.append(0) }
        var remaining = budget
        var ended: UInt8 = 0
        for index in entries.indices {
            let entry = entries[index]
            let bit: UInt8 = 1 << entry.importance.rawValue
            guard funded[entry.slot] == entry.step, entry.step == 0 || ended & bit == 0 else { continue }
            if entry.cost <= remaining || index == 0 {
                funded[entry.slot] += 1
                remaining = max(0, remaining - entry.cost)
            } else {
                ended |= bit
            }
        }
    }

    /// The cost of the cheapest step that comes next on top of those that the slots have; `nil` when they have all.
    func nextCost(above funded: [Int]) -> Int? {
        var cost: Int?
        var ended: UInt8 = 0
        for index in entries.indices {
            let entry = entries[index]
            let bit: UInt8 = 1 << entry.importance.rawValue
            guard funded[entry.slot] == entry.step, ended & bit == 0 else { continue }
            ended |= bit
            cost = min(cost ?? .max, entry.cost)
        }
        return cost
    }
}
