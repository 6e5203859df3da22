import Base

/// The mandatory fields of a dependency descriptor, which can be read without the stream's structure (AV1 RTP
/// specification, A.8.2).
public struct DependencyDescriptorHeader: Hashable, Sendable {
    /// The offset of the two bytes of the frame number.
    public static let frameNumberOffset = 1

    /// Whether this is the first packet of a frame. A frame is one spatial layer of a picture.
    public let startsFrame: Bool
    /// Whether this is the last packet of a frame.
    public let endsFrame: Bool
    /// frame_dependency_template_id, 0…63, before the structure's offset is subtracted.
    public let templateID: UInt8
    /// Counts the frames of all layers, modulo 65,536.
    public let frameNumber: UInt16
    /// Whether a structure is attached, as on the first packet of a coded video sequence.
    public let hasStructure: Bool

    /// Whether a key frame starts here.
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

    /// The decode targets that the sender produces, one bit each, the first one in the lowest; `nil` when a descriptor without
    /// an attached structure does not name them.
    /// - Parameter targetCount: the number of decode targets of the structure, 1…32.
    public static func activeTargets(_ data: RawSpan, targetCount: Int) -> UInt32? {
        guard data.byteCount > 3 else { return nil }
        var reader = BitReader(data, at: 3)
        let flags = reader.bits(5)
        guard flags & (DescriptorFlags.structure | DescriptorFlags.activeTargets) == DescriptorFlags.activeTargets
        else { return nil }
        let mask = reader.bits(targetCount)
        return reader.isExhausted ? nil : mask
    }

    /// Adds to the template identifier of a descriptor, and to the offset of the structure that is attached to it.
    /// - Parameters:
    ///   - data: a descriptor of at least three bytes.
    ///   - shift: 0…63; identifiers count modulo 64.
    public static func shiftTemplateIDs(in data: inout MutableRawSpan, by shift: UInt8) {
        guard data.byteCount >= 3 else { return }
        let first = data.bytes.byte(at: 0)
        data.store(first & 0xC0 | (first &+ shift) & 0x3F, at: 0)
        guard data.byteCount > 4 else { return }
        // Five flags, then the six bits of template_id_offset.
        let (high, low) = (data.bytes.byte(at: 3), data.bytes.byte(at: 4))
        guard high & 0x80 != 0 else { return }
        let offset = ((high & 0x07) << 3 | low >> 5) &+ shift
        data.store(high & 0xF8 | (offset >> 3) & 0x07, at: 3)
        data.store(low & 0x1F | offset << 5, at: 4)
    }
}

/// Why a dependency descriptor cannot be read.
public enum DependencyDescriptorError: Error, Hashable, Sendable {
    case truncated
    /// It refers to a structure that was not received.
    case noStructure
    /// Its template is not in the structure.
    case unknownTemplate
    /// The structure exceeds the limits of the format: 64 templates, 4 spatial and 8 temporal layers.
    case invalidStructure
}

/// The relation of a frame to a decode target, DTI (AV1 RTP specification, A.8.3).
public enum DecodeTargetIndication: UInt8, Hashable, Sendable {
    case notPresent, discardable, switchable, required
}

/// The indications for up to 32 decode targets, two bits each.
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

/// The template dependency structure of a coded video sequence (AV1 RTP specification, A.8.3); sent with key frames.
public struct DependencyStructure: Hashable, Sendable {
    /// The highest layer of a decode target.
    public struct Layer: Hashable, Sendable {
        /// 0…3.
        public let spatialID: UInt8
        /// 0…7.
        public let temporalID: UInt8

        /// Creates a layer.
        public init(spatialID: UInt8, temporalID: UInt8) {
            self.spatialID = spatialID
            self.temporalID = temporalID
        }
    }
    /// The properties that the frames of a template share.
    public struct Template: Hashable, Sendable {
        /// 0…3.
        public let spatialID: UInt8
        /// 0…7.
        public let temporalID: UInt8
        /// The indication for each decode target.
        public internal(set) var indications = DecodeTargetIndications()
        /// The distance in frames to the previous frame of each chain; 0 when the chain starts here.
        public internal(set) var chainDifferences: [UInt8] = []
    }
    /// The maximum render size of a spatial layer.
    public struct Resolution: Hashable, Sendable {
        /// In pixels, 1…65,536.
        public let width: Int
        /// In pixels, 1…65,536.
        public let height: Int
    }
    /// The most templates that a structure has.
    public static let templatesMax = 64

    /// The identifier of the first template; the others follow modulo 64.
    public internal(set) var templateIDOffset: UInt8 = 0
    /// 1…64.
    public internal(set) var templates: [Template] = []
    /// The layer of each decode target; 1…32 of them.
    public internal(set) var decodeTargets: [Layer] = []
    /// The chain that protects each decode target; empty without chains.
    public internal(set) var protectingChains: [UInt8] = []
    /// 0…32.
    public internal(set) var chainCount = 0
    /// One for each spatial layer, or empty.
    public internal(set) var resolutions: [Resolution] = []

    /// 1…32.
    public var decodeTargetCount: Int { decodeTargets.count }
    /// One bit for each decode target, all set.
    var allDecodeTargets: UInt32 { UInt32(truncatingIfNeeded: (1 as UInt64) << UInt64(decodeTargetCount) &- 1) }

    /// The index in ``templates`` of an identifier, 0…63; it may be beyond the last one.
    public func index(ofTemplate id: UInt8) -> Int { Int((id &- templateIDOffset) & 0x3F) }

    /// The template with the identifier `id`; `nil` when there is none.
    func template(_ id: UInt8) -> Template? {
        let index = index(ofTemplate: id)
        return index < templates.count ? templates[index] : nil
    }
}

/// A complete dependency descriptor with its template applied (AV1 RTP specification, A.8).
///
/// Only a descriptor with an attached structure allocates.
public struct DependencyDescriptor: Hashable, Sendable {
    static let chainsMax = 32

    /// The mandatory fields.
    public let header: DependencyDescriptorHeader
    /// 0…3.
    public let spatialID: UInt8
    /// 0…7.
    public let temporalID: UInt8
    /// The indication for each decode target, custom or from the template.
    public let indications: DecodeTargetIndications
    /// The attached structure, which replaces that of the stream.
    public let attachedStructure: DependencyStructure?
    /// One bit for each decode target that the sender produces; `nil` when unchanged.
    public let activeDecodeTargets: UInt32?
    /// 0…32.
    public let chainCount: Int
    private var differences: [32 of UInt8] = .init(repeating: 0)

    /// The distance in frames to the previous frame of `chain`, which is in 0..<``chainCount``; 0 when the chain starts
    /// here.
    public func chainDifference(_ chain: Int) -> UInt8 { differences[chain] }

    /// - Parameter structure: the newest structure of the stream; not used when one is attached.
    public init(_ data: RawSpan, structure: DependencyStructure?) throws(DependencyDescriptorError) {
        guard let header = DependencyDescriptorHeader(data) else { throw .truncated }
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
        guard let template = current.template(header.templateID) else { throw .unknownTemplate }
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
        self.header = header
        spatialID = template.spatialID
        temporalID = template.temporalID
        self.indications = indications
        attachedStructure = attached
        activeDecodeTargets = active
        chainCount = current.chainCount
    }

    /// Compares all fields, and of the chains the first ``chainCount``.
    public static func == (left: Self, right: Self) -> Bool {
        left.header == right.header && left.spatialID == right.spatialID && left.temporalID == right.temporalID
            && left.indications == right.indications && left.attachedStructure == right.attachedStructure
            && left.activeDecodeTargets == right.activeDecodeTargets && left.chainCount == right.chainCount
            && (0..<left.chainCount).allSatisfy { left.differences[$0] == right.differences[$0] }
    }

    /// Hashes the fields that usually differ between frames.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(header)
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

    /// template_layers(): each template is in the layer of the previous one, the next temporal or the next spatial
    /// layer.
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

    /// decode_target_layers(): the highest layer of the templates that belong to the target.
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

/// The flags in a descriptor's fourth byte (extended_descriptor_fields(), A.8.2).
enum DescriptorFlags {
    static let structure: UInt32 = 0x10
    static let activeTargets: UInt32 = 0x08
    static let customIndications: UInt32 = 0x04
    static let customReferences: UInt32 = 0x02
    static let customChains: UInt32 = 0x01
}

/// Reads bits, most significant first. After the end it reads zeros and sets ``isExhausted``.
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

    /// ns(n) (AV1 §4.10.7): a value below `limit`, which is at least 1.
    @_lifetime(self: copy self)
    mutating func nonSymmetric(_ limit: UInt32) -> UInt32 {
        let width = 32 - limit.leadingZeroBitCount
        let short = (1 as UInt32) << UInt32(width) - limit
        let value = bits(width - 1)
        return value < short ? value : value << 1 - short + bits(1)
    }

    /// frame_fdiffs(): the references of a frame, which only a decoder needs.
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
