import Base

/// The VP9 payload descriptor (RFC 9628 §4.2).
///
/// ```text
/// |I|P|L|F|B|E|V|Z|
/// |M| PICTURE ID  |   with I; with M another 8 bits of it
/// | TID |U| SID |D|   with L
/// |   TL0PICIDX   |   with L, without F
/// |  P_DIFF     |N|   with F and P, up to three
/// | scalability structure, with V
/// ```
public struct VP9PayloadDescriptor: Hashable, Sendable {
    /// The fields of the scalability structure (§4.2.1) that an SFU needs.
    public struct ScalabilityStructure: Hashable, Sendable {
        /// 1…8.
        public let spatialLayerCount: Int
        /// Of the highest layer, in pixels; `nil` where the structure has no sizes.
        public let width: UInt16?
        /// Of the highest layer, in pixels; `nil` where the structure has no sizes.
        public let height: UInt16?
    }
    /// The most P_DIFF fields of one descriptor (§4.2).
    private static let referencesMax = 3

    /// Bytes before the VP9 data.
    public let headerLength: Int
    /// PictureID; `nil` if absent.
    public let pictureID: PictureIDField?
    /// TL0PICIDX; `nil` if absent.
    public let tl0PictureIndex: TL0PictureIndexField?
    /// TID, 0…7.
    public let temporalID: UInt8?
    /// SID, 0…7.
    public let spatialID: UInt8?
    /// U: a receiver can switch up to this temporal layer here.
    public let switchingUp: Bool
    /// D: the frame depends on the next lower spatial layer of its picture.
    public let interLayerDependency: Bool
    /// P: the frame depends on an earlier picture.
    public let interPicturePredicted: Bool
    /// F: flexible mode, the descriptor lists the references.
    public let isFlexible: Bool
    /// B: a frame (one spatial layer of a picture) starts here.
    public let beginsFrame: Bool
    /// E: a frame ends here.
    public let endsFrame: Bool
    /// Z: no higher spatial layer depends on this frame.
    public let notReferencedByUpperLayers: Bool
    /// SS; sent with key frames.
    public let scalabilityStructure: ScalabilityStructure?

    /// Whether a key frame starts with this packet: the lowest spatial layer of a picture without references.
    public var isKeyFrameStart: Bool { beginsFrame && !interPicturePredicted && (spatialID ?? 0) == 0 }

    /// `nil` when the payload ends within or directly after the descriptor, or when there are more than three
    /// references.
    public init?(_ payload: RawSpan) {
        guard payload.byteCount >= 1 else { return nil }
        let flags = payload.byte(at: 0)
        interPicturePredicted = flags & 0x40 != 0
        isFlexible = flags & 0x10 != 0
        beginsFrame = flags & 0x08 != 0
        endsFrame = flags & 0x04 != 0
        notReferencedByUpperLayers = flags & 0x01 != 0
        var offset = 1
        var pictureID: PictureIDField?
        if flags & 0x80 != 0 {
            guard let read = Self.readPictureID(payload, at: &offset) else { return nil }
            pictureID = read
        }
        var layers: UInt8?
        var tl0PictureIndex: TL0PictureIndexField?
        if flags & 0x20 != 0 {
            guard payload.byteCount > offset else { return nil }
            layers = payload.byte(at: offset)
            offset += 1
            if !isFlexible {
                guard payload.byteCount > offset else { return nil }
                tl0PictureIndex = TL0PictureIndexField(value: payload.byte(at: offset), offset: offset)
                offset += 1
            }
        }
        if isFlexible, interPicturePredicted {
            guard Self.skipReferences(payload, at: &offset) else { return nil }
        }
        var structure: ScalabilityStructure?
        if flags & 0x02 != 0 {
            guard let read = Self.readStructure(payload, at: &offset) else { return nil }
            structure = read
        }
        guard payload.byteCount > offset else { return nil }
        headerLength = offset
        self.pictureID = pictureID
        self.tl0PictureIndex = tl0PictureIndex
        temporalID = layers.map { $0 >> 5 }
        spatialID = layers.map { $0 >> 1 & 0x07 }
        switchingUp = layers.map { $0 & 0x10 != 0 } ?? false
        interLayerDependency = layers.map { $0 & 0x01 != 0 } ?? false
        scalabilityStructure = structure
    }

    private static func readPictureID(_ payload: RawSpan, at offset: inout Int) -> PictureIDField? {
        guard payload.byteCount > offset else { return nil }
        let start = offset
        guard payload.byte(at: start) & 0x80 != 0 else {
            offset += 1
            return PictureIDField(value: UInt16(payload.byte(at: start)), bits: 7, offset: start)
        }
        guard payload.byteCount >= start + 2 else { return nil }
        offset += 2
        return PictureIDField(value: payload.bigEndianUInt16(at: start) & 0x7FFF, bits: 15, offset: start)
    }

    private static func skipReferences(_ payload: RawSpan, at offset: inout Int) -> Bool {
        for _ in 0..<referencesMax {
            guard payload.byteCount > offset else { return false }
            let more = payload.byte(at: offset) & 0x01 != 0
            offset += 1
            if !more { return true }
        }
        return false
    }

    /// `| N_S |Y|G| - |`, followed by sizes (Y) and the picture group (G).
    private static func readStructure(_ payload: RawSpan, at offset: inout Int) -> ScalabilityStructure? {
        guard payload.byteCount > offset else { return nil }
        let head = payload.byte(at: offset)
        let layerCount = Int(head >> 5) + 1
        offset += 1
        var width: UInt16?
        var height: UInt16?
        if head & 0x10 != 0 {
            guard payload.byteCount >= offset + 4 * layerCount else { return nil }
            offset += 4 * layerCount
            width = payload.bigEndianUInt16(at: offset - 4)
            height = payload.bigEndianUInt16(at: offset - 2)
        }
        if head & 0x08 != 0 {
            guard payload.byteCount > offset else { return nil }
            let pictureCount = Int(payload.byte(at: offset))
            offset += 1
            for _ in 0..<pictureCount {
                guard payload.byteCount > offset else { return nil }
                offset += 1 + Int(payload.byte(at: offset) >> 2 & 0x03)
            }
            guard payload.byteCount >= offset else { return nil }
        }
        return ScalabilityStructure(spatialLayerCount: layerCount, width: width, height: height)
    }
}
