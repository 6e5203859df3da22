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
    /// Bit/s that the path has to carry for the first one.
    private var firstCost = 0
    /// Bit/s that the path is known to carry and no more; `nil` while that is not known.
    var carried: Int?

    /// The last picture stays while the path carries this much of its cost, which counts peaks and retransmissions (cases Return 0.7
    /// to 0.8 of the server's scorecard: frozen for 1 s of 20 in place of 4 to 20).
    private static let keptTenths = 8
    /// A better layer that plays counts without the margin of its cost for retransmissions, so that small changes of the rate do not
    /// take it (`LayerLadder.costPerMille`).
    private static let heldPerMille = 950

    /// One step of one slot.
    private struct Entry: BitwiseCopyable {
        /// Lower ones are funded first.
        let key: UInt64
        let id: UInt32
        let slot: UInt32
        let step: UInt32
        /// One bit for each importance.
        let importanceBit: UInt32
        /// On top of the step below.
        let cost: Int

        static func precedes(_ left: Self, _ right: Self) -> Bool {
            left.key != right.key ? left.key < right.key : left.id < right.id
        }

        /// - Parameters:
        ///   - group: 0…15; lower ones are funded first.
        ///   - merit: above 0; of one group higher ones are funded first.
        ///   - rank: of the importance, 0 for the highest.
        static func key(group: Int, merit: Double, rank: Int, step: Int) -> UInt64 {
            // The bits of floating-point numbers above 0 have their order.
            UInt64(group) << 40 | UInt64(~Float(merit).bitPattern) << 8 | UInt64(rank) << 6 | UInt64(step)
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
                let group: Int
                var merit: Double
                if step == 0 {
                    group = 2 * rank + (heldCount > 0 ? 0 : 1)
                    merit = 1 / Double(max(1, layers.cost))
                } else {
                    let isMinimum = step < ladder.minimum
                    group = isMinimum ? 8 + rank : 12
                    merit = layers.slope * (isMinimum ? 1 : LayerUtility.weight(of: ladder.importance))
                    if step < heldCount { merit *= Self.heldFactor }
                }
                let cost = layers.cost - below
                entries.append(
                    Entry(
                        key: Entry.key(group: group, merit: merit, rank: rank, step: step),
                        id: ladder.id.rawValue,
                        slot: UInt32(slot),
                        step: UInt32(step),
                        importanceBit: 1 << UInt32(ladder.importance.rawValue),
                        cost: step > 0 && step < heldCount ? cost / 1_000 * Self.heldPerMille : cost
                    )
                )
                below = layers.cost
            }
        }
        entries.sort(by: Entry.precedes)
        guard let first = entries.first else { return }
        let isHeld = Int(first.slot) < held.count && held[Int(first.slot)] > 0
        firstCost = isHeld ? first.cost / 10 * Self.keptTenths : first.cost
    }

    /// Funds steps within the budget, and the cheapest one of the most important slot unless the path is known not to carry
    /// it: without video nothing would tell what the path carries.
    /// - Parameter funded: replaced by how many steps of its ladder each slot gets.
    func divide(_ budget: Int, over count: Int, into funded: inout [Int]) {
        funded.removeAll(keepingCapacity: true)
        for _ in 0..<count { funded.append(0) }
        var remaining = budget
        var ended: UInt32 = 0
        for index in entries.indices {
            let entry = entries[index]
            let slot = Int(entry.slot)
            guard funded[slot] == entry.step, entry.step == 0 || ended & entry.importanceBit == 0 else { continue }
            if entry.cost <= remaining || index == 0 && firstCost <= carried ?? .max {
                funded[slot] += 1
                remaining = max(0, remaining - entry.cost)
            } else {
                ended |= entry.importanceBit
            }
        }
    }

    /// The cost of the cheapest step that comes next on top of those that the slots have; `nil` when they have all.
    func nextCost(above funded: [Int]) -> Int? {
        var cost: Int?
        var ended: UInt32 = 0
        for index in entries.indices {
            let entry = entries[index]
            guard funded[Int(entry.slot)] == entry.step, ended & entry.importanceBit == 0 else { continue }
            ended |= entry.importanceBit
            cost = min(cost ?? .max, entry.cost)
        }
        return cost
    }
}
