/// The start of a dependency descriptor, which reads without the stream's structure (AV1 RTP specification, A.8.2).
public struct DependencyDescriptorHead: Hashable, Sendable {
    /// Where the frame number stands in the element's data: two bytes.
    public static let frameNumberOffset = 1

    /// The first packet of a frame; a frame is one spatial layer of a picture.
    public let startsFrame: Bool
    /// The last packet of a frame.
    public let endsFrame: Bool
    /// 0…63, before the structure's offset is taken off.
    public let templateID: UInt8
    /// Counts frames over all layers; wraps at 65,536.
    public let frameNumber: UInt16
    /// A structure is attached, as on the first packet of a coded video sequence.
    public let hasStructure: Bool

    /// A receiver that has nothing yet can start here.
    public var startsKeyFrame: Bool { startsFrame && hasStructure }

    /// `nil` when `data` is shorter than three bytes.
    public init?(_ data: RawSpan) {
        guard data.byteCount >= 3 else { return nil }
        let first = data.byte(at: 0)
        startsFrame = first & 0x80 != 0
        endsFrame = first & 0x40 != 0
        templateID = first & 0x3F
        frameNumber = data.bigEndianUInt16(at: Self.frameNumberOffset)
        hasStructure = data.byteCount > 3 && data.byte(at: 3) & 0x80 != 0
    }
}

/// Why a dependency descriptor cannot be read.
public enum DependencyDescriptorError: Error, Hashable, Sendable {
    case truncated
    /// It refers to a structure that has not been seen.
    case noStructure
    /// Its template is not in the structure.
    case unknownTemplate
    /// The structure goes beyond the format's limits: 64 templates, 4 spatial and 8 temporal layers.
    case invalidStructure
}

/// What a frame is to a decode target (AV1 RTP specification, A.8.3).
public enum DecodeTargetIndication: UInt8, Hashable, Sendable {
    case notPresent, discardable, switchable, required
}

/// Indications of up to 32 decode targets, two bits each.
public struct DecodeTargetIndications: Hashable, Sendable {
    private var bits: UInt64 = 0

    init() {}

    /// `target` is 0…31.
    public subscript(_ target: Int) -> DecodeTargetIndication {
        get { DecodeTargetIndication(rawValue: UInt8(truncatingIfNeeded: bits >> UInt64(2 * target)) & 3) ?? .required }
        set {
            bits &= ~(3 << UInt64(2 * target))
            bits |= UInt64(newValue.rawValue) << UInt64(2 * target)
        }
    }
}

/// The templates and decode targets of a coded video sequence (AV1 RTP specification, A.8.3); sent with key frames.
public struct DependencyStructure: Hashable, Sendable {
    /// The highest layer that a decode target has.
    public struct Layer: Hashable, Sendable {
        /// 0…3.
        public let spatialID: UInt8
        /// 0…7.
        public let temporalID: UInt8

        /// A layer by its two numbers.
        public init(spatialID: UInt8, temporalID: UInt8) {
            self.spatialID = spatialID
            self.temporalID = temporalID
        }
    }
    /// What frames that name it have in common.
    public struct Template: Hashable, Sendable {
        /// 0…3.
        public let spatialID: UInt8
        /// 0…7.
        public let temporalID: UInt8
        /// What the frame is to each decode target.
        public internal(set) var indications = DecodeTargetIndications()
        /// Frames back to the previous one of each chain; 0 for a chain that starts here.
        public internal(set) var chainDifferences: [UInt8] = []
    }
    /// The largest size that a spatial layer is shown at.
    public struct Resolution: Hashable, Sendable {
        /// In pixels, 1…65,536.
        public let width: Int
        /// In pixels, 1…65,536.
        public let height: Int
    }
    /// The most templates that a structure has.
    public static let templatesMax = 64

    /// The identifier of the first template; those behind it count on modulo 64.
    public internal(set) var templateIDOffset: UInt8 = 0
    /// 1…64.
    public internal(set) var templates: [Template] = []
    /// One a decode target, 1…32.
    public internal(set) var decodeTargets: [Layer] = []
    /// The chain that protects each decode target; empty where there are no chains.
    public internal(set) var protectingChains: [UInt8] = []
    /// 0…32.
    public internal(set) var chainCount = 0
    /// One a spatial layer, or empty.
    public internal(set) var resolutions: [Resolution] = []

    /// 1…32.
    public var decodeTargetCount: Int { decodeTargets.count }
    /// One bit a decode target, all set.
    public var allDecodeTargets: UInt32 { UInt32(truncatingIfNeeded: (1 as UInt64) << UInt64(decodeTargetCount) &- 1) }

    /// The place among `templates` that an identifier names, 0…63; it may be beyond the last one.
    public func index(ofTemplate id: UInt8) -> Int { Int((id &- templateIDOffset) & 0x3F) }

    /// The template that `id` names; `nil` when there is none.
    func template(_ id: UInt8) -> Template? {
        let index = index(ofTemplate: id)
        return index < templates.count ? templates[index] : nil
    }
}

/// A whole dependency descriptor, its template already applied (AV1 RTP specification, A.8).
///
/// Only one that brings a structure allocates.
public struct DependencyDescriptor: Hashable, Sendable {
    static let chainsMax = 32

    /// The mandatory fields.
    public let head: DependencyDescriptorHead
    /// 0…3.
    public let spatialID: UInt8
    /// 0…7.
    public let temporalID: UInt8
    /// What the frame is to each decode target, custom or the template's.
    public let indications: DecodeTargetIndications
    /// The structure that came with it; takes the place of the stream's.
    public let attachedStructure: DependencyStructure?
    /// One bit a decode target that the sender produces now; `nil` while it has not changed.
    public let activeDecodeTargets: UInt32?
    /// 0…32.
    public let chainCount: Int
    private var differences: [32 of UInt8] = .init(repeating: 0)

    /// Frames back to the previous one of `chain`, 0..<`chainCount`; 0 when the chain starts here.
    public func chainDifference(_ chain: Int) -> UInt8 { differences[chain] }

    /// - Parameter structure: the stream's newest; not looked at when one is attached.
    public init(_ data: RawSpan, structure: DependencyStructure?) throws(DependencyDescriptorError) {
        guard let head = DependencyDescriptorHead(data) else { throw .truncated }
        var reader = BitReader(data, at: 3)
        var flags: UInt32 = 0
        var attached: DependencyStructure?
        if data.byteCount > 3 {
            flags = reader.bits(5)
            if flags & DescriptorFlags.structure != 0 { attached = try DependencyStructure(&reader) }
        }
        guard let current = attached ?? structure else { throw .noStructure }
        var active = attached?.allDecodeTargets
        if flags & DescriptorFlags.activeTargets != 0 { active = reader.bits(current.decodeTargetCount) }
        guard let template = current.template(head.templateID) else { throw .unknownTemplate }
        var indications = template.indications
        if flags & DescriptorFlags.customIndications != 0 {
            for target in 0..<current.decodeTargetCount { indications[target] = reader.indication() }
        }
        if flags & DescriptorFlags.customReferences != 0 { reader.skipFrameDifferences() }
        for chain in 0..<current.chainCount {
            let isCustom = flags & DescriptorFlags.customChains != 0
            differences[chain] = isCustom ? UInt8(reader.bits(8)) : template.chainDifferences[chain]
        }
        guard !reader.isExhausted else { throw .truncated }
        self.head = head
        spatialID = template.spatialID
        temporalID = template.temporalID
        self.indications = indications
        attachedStructure = attached
        activeDecodeTargets = active
        chainCount = current.chainCount
    }

    /// Equal in all that is read, of the chains those that there are.
    public static func == (left: Self, right: Self) -> Bool {
        left.head == right.head && left.spatialID == right.spatialID && left.temporalID == right.temporalID
            && left.indications == right.indications && left.attachedStructure == right.attachedStructure
            && left.activeDecodeTargets == right.activeDecodeTargets && left.chainCount == right.chainCount
            && (0..<left.chainCount).allSatisfy { left.differences[$0] == right.differences[$0] }
    }

    /// Hashes the part that tells frames apart.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(head)
        hasher.combine(indications)
    }
}

extension DependencyStructure {
    /// template_dependency_structure().
    init(_ reader: inout BitReader) throws(DependencyDescriptorError) {
        templateIDOffset = UInt8(reader.bits(6))
        let targetCount = Int(reader.bits(5)) + 1
        try readLayers(&reader)
        for index in templates.indices {
            for target in 0..<targetCount { templates[index].indications[target] = reader.indication() }
        }
        for _ in templates.indices {
            while reader.bits(1) == 1 { _ = reader.bits(4) }
        }
        readChains(&reader, targetCount: targetCount)
        for target in 0..<targetCount { decodeTargets.append(layer(ofTarget: target)) }
        if reader.bits(1) == 1 {
            for _ in 0...Int(templates.last?.spatialID ?? 0) {
                let width = Int(reader.bits(16)) + 1
                resolutions.append(Resolution(width: width, height: Int(reader.bits(16)) + 1))
            }
        }
        guard !reader.isExhausted else { throw .truncated }
    }

    /// template_layers(): each template is in the layer of the previous one, the next temporal, or the next spatial one.
    private mutating func readLayers(_ reader: inout BitReader) throws(DependencyDescriptorError) {
        var spatialID: UInt8 = 0
        var temporalID: UInt8 = 0
        while true {
            guard templates.count < Self.templatesMax, spatialID < 4, temporalID < 8 else { throw .invalidStructure }
            templates.append(Template(spatialID: spatialID, temporalID: temporalID))
            switch reader.bits(2) {
            case 0: break
            case 1: temporalID += 1
            case 2:
                temporalID = 0
                spatialID += 1
            default: return
            }
            guard !reader.isExhausted else { throw .truncated }
        }
    }

    /// template_chains().
    private mutating func readChains(_ reader: inout BitReader, targetCount: Int) {
        chainCount = Int(reader.nonSymmetric(UInt32(targetCount + 1)))
        guard chainCount > 0 else { return }
        for _ in 0..<targetCount { protectingChains.append(UInt8(reader.nonSymmetric(UInt32(chainCount)))) }
        for index in templates.indices {
            for _ in 0..<chainCount { templates[index].chainDifferences.append(UInt8(reader.bits(4))) }
        }
    }

    /// decode_target_layers(): the highest of the templates that belong to the target.
    private func layer(ofTarget target: Int) -> Layer {
        var spatialID: UInt8 = 0
        var temporalID: UInt8 = 0
        for template in templates where template.indications[target] != .notPresent {
            spatialID = max(spatialID, template.spatialID)
            temporalID = max(temporalID, template.temporalID)
        }
        return Layer(spatialID: spatialID, temporalID: temporalID)
    }
}

/// The bits of a descriptor's fourth byte, of which each says what follows (extended_descriptor_fields(), A.8.2).
enum DescriptorFlags {
    static let structure: UInt32 = 0x10
    static let activeTargets: UInt32 = 0x08
    static let customIndications: UInt32 = 0x04
    static let customReferences: UInt32 = 0x02
    static let customChains: UInt32 = 0x01
}

/// Reads bits, most significant first. Behind the end everything reads as zero and `isExhausted` is set.
struct BitReader: ~Escapable {
    private let bytes: RawSpan
    private var position: Int
    private(set) var isExhausted = false

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, at offset: Int) {
        self.bytes = bytes
        position = 8 * offset
    }

    /// The next `count` bits, 0…32.
    @_lifetime(self: copy self)
    mutating func bits(_ count: Int) -> UInt32 {
        guard count <= 8 * bytes.byteCount - position else {
            isExhausted = true
            position = 8 * bytes.byteCount
            return 0
        }
        var value: UInt32 = 0
        for index in position..<(position + count) {
            value = value << 1 | UInt32(bytes.byte(at: index >> 3) >> UInt8(7 - index & 7) & 1)
        }
        position += count
        return value
    }

    /// ns(n) (AV1 §4.10.7): one of `limit` values, 1 or more, in as few bits as it takes.
    @_lifetime(self: copy self)
    mutating func nonSymmetric(_ limit: UInt32) -> UInt32 {
        let width = 32 - limit.leadingZeroBitCount
        let short = (1 as UInt32) << UInt32(width) - limit
        let value = bits(width - 1)
        return value < short ? value : value << 1 - short + bits(1)
    }

    /// frame_fdiffs(): which earlier frames a frame refers to. Only a decoder needs it.
    @_lifetime(self: copy self)
    mutating func skipFrameDifferences() {
        var size = bits(2)
        while size != 0 {
            _ = bits(4 * Int(size))
            size = bits(2)
        }
    }

    @_lifetime(self: copy self)
    mutating func indication() -> DecodeTargetIndication {
        DecodeTargetIndication(rawValue: UInt8(bits(2))) ?? .notPresent
    }
}
