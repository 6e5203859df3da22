import Wire

/// The decode targets of a dependency structure, in a fixed size: the first 16, as ``FrameDependencies`` covers them.
struct DecodeTargets: BitwiseCopyable {
    private static let targetsMax = 16

    private(set) var count = 0
    /// Those that the sender produces, one bit each, the first one in the lowest.
    var active = UInt16.max
    private var spatialIDs: [16 of UInt8] = .init(repeating: 0)
    private var temporalIDs: [16 of UInt8] = .init(repeating: 0)
    /// The chain that protects each target; `.max` for none.
    private var chains: [16 of UInt8] = .init(repeating: .max)
    /// For each target the ones whose frames are all frames of it.
    private var parts: [16 of UInt16] = .init(repeating: 0)

    /// Without a structure.
    init() {}

    init(_ structure: DependencyStructure) {
        count = min(structure.decodeTargetCount, Self.targetsMax)
        for target in 0..<count {
            spatialIDs[target] = structure.decodeTargets[target].spatialID
            temporalIDs[target] = structure.decodeTargets[target].temporalID
            if target < structure.protectingChains.count { chains[target] = structure.protectingChains[target] }
            for part in 0..<count {
                let isPart = structure.templates.allSatisfy {
                    $0.indications[part] == .notPresent || $0.indications[target] != .notPresent
                }
                if isPart { parts[target] |= 1 << UInt16(part) }
            }
        }
    }

    /// The highest layers of a target.
    func layers(of target: UInt8) -> (spatialID: UInt8, temporalID: UInt8) {
        let index = min(Int(target), Self.targetsMax - 1)
        return (spatialIDs[index], temporalIDs[index])
    }

    /// The chain that protects a target: every frame of it is needed to decode the target. `.max` for none.
    func chain(of target: UInt8) -> UInt8 { chains[min(Int(target), Self.targetsMax - 1)] }

    /// Whether all frames of one target belong to another one.
    func isPart(_ part: UInt8, of target: UInt8) -> Bool {
        parts[min(Int(target), Self.targetsMax - 1)] & (1 << UInt16(part)) != 0
    }

    /// The active target with the highest layers that do not exceed these; where there is none, the one with the lowest layers.
    /// `nil` without a structure.
    /// - Parameter only: of one spatial layer.
    func best(spatialID: UInt8, temporalID: UInt8, in only: UInt8? = nil) -> UInt8? {
        var best: Int?
        var lowest: Int?
        for target in 0..<count where active & (1 << UInt16(target)) != 0 {
            if let only, spatialIDs[target] != only { continue }
            if lowest.map({ rank(target) < rank($0) }) ?? true { lowest = target }
            guard spatialIDs[target] <= spatialID, temporalIDs[target] <= temporalID else { continue }
            if best.map({ rank(target) > rank($0) }) ?? true { best = target }
        }
        return (best ?? lowest).map { UInt8(truncatingIfNeeded: $0) }
    }

    private func rank(_ target: Int) -> Int { Int(spatialIDs[target]) << 8 | Int(temporalIDs[target]) }
}
