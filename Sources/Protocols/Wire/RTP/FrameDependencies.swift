/// The decode target indications and chain differences of one frame, in a fixed size (AV1 RTP specification, A.8.3).
///
/// It covers the first 16 decode targets and the first 4 chains. The largest structure of libwebrtc, L3T3, has 9 decode
/// targets and 3 chains.
public struct FrameDependencies: BitwiseCopyable, Hashable, Sendable {
    /// The most decode targets; further ones are ignored.
    static let targetsMax = 16
    /// The most chains; further ones are ignored.
    static let chainsMax = 4

    /// Two bits for each decode target, the first one in the lowest bits.
    private var indicationBits: UInt32 = 0
    /// Eight bits for each chain, the first one in the lowest bits.
    private var chainBits: UInt32 = 0
    /// 0…16; 0 when nothing is known about the frame.
    public private(set) var targetCount: UInt8 = 0
    /// 0…4.
    public private(set) var chainCount: UInt8 = 0

    /// Nothing is known about the frame.
    public init() {}

    /// The dependencies of a template's frames.
    public init(_ template: DependencyStructure.Template, of structure: DependencyStructure) {
        self.init(
            indications: template.indications,
            targetCount: structure.decodeTargetCount,
            chainCount: structure.chainCount
        ) { template.chainDifferences[$0] }
    }

    /// The dependencies of a descriptor's frame.
    /// - Parameter targetCount: the number of decode targets of its structure.
    public init(_ descriptor: DependencyDescriptor, targetCount: Int) {
        self.init(
            indications: descriptor.indications,
            targetCount: targetCount,
            chainCount: descriptor.chainCount,
            chainDifference: descriptor.chainDifference
        )
    }

    private init(
        indications: DecodeTargetIndications,
        targetCount: Int,
        chainCount: Int,
        chainDifference: (Int) -> UInt8
    ) {
        self.targetCount = UInt8(min(targetCount, Self.targetsMax))
        self.chainCount = UInt8(min(chainCount, Self.chainsMax))
        for target in 0..<Int(self.targetCount) { setIndication(indications[target], for: target) }
        for chain in 0..<Int(self.chainCount) { setDifference(chainDifference(chain), of: chain) }
    }

    /// Reads a descriptor without an attached structure. Does not allocate.
    /// - Parameters:
    ///   - data: the complete descriptor.
    ///   - template: the dependencies of the descriptor's template.
    ///   - targetCount: the number of decode targets of the structure, 1…32.
    ///   - chainCount: the number of chains of the structure, 0…32.
    /// - Returns: `nil` when the descriptor is truncated or has an attached structure.
    public init?(_ data: RawSpan, template: FrameDependencies, targetCount: Int, chainCount: Int) {
        self = template
        guard data.byteCount > 3 else { return }
        var reader = BitReader(data, at: 3)
        let flags = reader.bits(5)
        guard flags & DescriptorFlags.structure == 0 else { return nil }
        if flags & DescriptorFlags.activeTargets != 0 { _ = reader.bits(targetCount) }
        if flags & DescriptorFlags.customIndications != 0 {
            for target in 0..<targetCount {
                let indication = reader.indication()
                if target < Self.targetsMax { setIndication(indication, for: target) }
            }
        }
        if flags & DescriptorFlags.customReferences != 0 { reader.skipFrameDifferences() }
        if flags & DescriptorFlags.customChains != 0 {
            for chain in 0..<chainCount {
                let difference = UInt8(truncatingIfNeeded: reader.bits(8))
                if chain < Self.chainsMax { setDifference(difference, of: chain) }
            }
        }
        guard !reader.isExhausted else { return nil }
    }

    private mutating func setIndication(_ indication: DecodeTargetIndication, for target: Int) {
        indicationBits &= ~(3 << UInt32(truncatingIfNeeded: 2 &* target))
        indicationBits |= UInt32(indication.rawValue) << UInt32(truncatingIfNeeded: 2 &* target)
    }

    private mutating func setDifference(_ difference: UInt8, of chain: Int) {
        chainBits &= ~(0xFF << UInt32(truncatingIfNeeded: 8 &* chain))
        chainBits |= UInt32(difference) << UInt32(truncatingIfNeeded: 8 &* chain)
    }

    /// The indication for a decode target; `notPresent` for one that is not covered.
    public func indication(for target: Int) -> DecodeTargetIndication {
        guard target >= 0, target < Int(targetCount) else { return .notPresent }
        let bits = UInt8(truncatingIfNeeded: indicationBits >> UInt32(truncatingIfNeeded: 2 &* target)) & 3
        return DecodeTargetIndication(rawValue: bits) ?? .notPresent
    }

    /// The distance in frames to the previous frame of a chain, 0 when the chain starts here; `nil` for a chain that is
    /// not covered.
    public func chainDifference(_ chain: Int) -> UInt8? {
        guard chain >= 0, chain < Int(chainCount) else { return nil }
        return UInt8(truncatingIfNeeded: chainBits >> UInt32(truncatingIfNeeded: 8 &* chain))
    }

    /// Whether no other frame of the covered decode targets depends on the frame.
    public var isDiscardable: Bool { targetCount != 0 && indicationBits & 0xAAAA_AAAA == 0 }
}
