import Base

/// A codec whose frames are NAL units.
package enum NALCodec: Hashable, Sendable {
    case h264, h265

    /// The codec of frames.
    package var codec: MediaCodec { self == .h264 ? .h264 : .h265 }

    /// `nil` for a codec of other units.
    package init?(_ codec: MediaCodec) {
        switch codec {
        case .h264: self = .h264
        case .h265: self = .h265
        default: return nil
        }
    }
}

/// One coded picture as MP4 has it, with what a container tells of it.
package struct AccessUnit: Hashable, Sendable {
    /// NAL units after their lengths in four bytes: ``MediaFrame/bytes``.
    package let bytes: [UInt8]
    /// Whether decoding can start here: an IDR picture of H.264, an IDR, BLA or CRA picture of H.265.
    package let isKey: Bool
    /// Whether no other picture refers to this one: each slice has nal_ref_idc 0 (H.264), or is a sub-layer
    /// non-reference picture of the highest temporal sub-layer (H.265).
    package let isDiscardable: Bool
    /// Whether a slice is bipredicted, so that the picture may be shown before one that is decoded earlier.
    package let hasBSlices: Bool
    /// The parameter sets, with the first key picture and the first one after they changed; `nil` otherwise.
    package let configuration: CodecConfiguration?
}

/// Makes access units of NAL units: keeps parameter sets aside, and leaves out delimiters, filler and long SEI
/// messages.
///
/// The caller knows where an access unit ends, by the RTP timestamp or the tag, and calls ``finish()``.
package struct AccessUnitBuilder: Sendable {
    /// The bytes of an SEI message's NAL unit up to which it is kept: captions and time codes are shorter, and an
    /// encoder's settings or private data only cost room.
    package static let messageBytesMax = 1_024

    /// The treatment of a NAL unit.
    private enum Role { case parameterSet, slice, kept, left }

    private let codec: NALCodec
    private var sets = ParameterSets()
    private var bytes: [UInt8] = []
    private var unitCount = 0
    private var hasSlice = false
    private var isKey = false
    private var isDiscardable = true
    private var isIntra = true
    private var hasBSlices = false
    private var hasNewSets = true

    /// Creates a builder without parameter sets.
    package init(codec: NALCodec) { self.codec = codec }

    /// The configuration of the parameter sets in use; `nil` before a sequence and a picture parameter set are there.
    package var configuration: CodecConfiguration? { sets.configuration(codec) }

    /// Takes parameter sets that came out of band instead of those in use. Sets that cannot be read are left out.
    package mutating func setConfiguration(_ configuration: CodecConfiguration) {
        var fresh = ParameterSets()
        switch configuration {
        case .h264(let record) where codec == .h264:
            // The first of a record stays the first.
            let units = record.sequenceParameterSets + record.pictureParameterSets
            for unit in units.reversed() where !unit.isEmpty {
                _ = try? fresh.store(h264: unsafe unit.span.bytes)
            }
        case .h265(let record) where codec == .h265:
            let units = record.videoParameterSets + record.sequenceParameterSets + record.pictureParameterSets
            for unit in units.reversed() { _ = try? fresh.store(h265: unsafe unit.span.bytes) }
        default: return
        }
        if fresh != sets { hasNewSets = true }
        sets = fresh
    }

    /// Takes the next NAL unit of the access unit, without start code.
    package mutating func append(_ unit: RawSpan) throws(FormatError) {
        guard unit.byteCount > (codec == .h264 ? 0 : 1) else { throw .truncated("a NAL unit header") }
        guard unitCount < FormatLimits.unitsMax else { throw .limit("NAL units of an access unit") }
        unitCount += 1
        switch codec == .h264 ? roleH264(of: unit) : roleH265(of: unit) {
        case .left: return
        case .parameterSet:
            if try codec == .h264 ? sets.store(h264: unit) : sets.store(h265: unit) { hasNewSets = true }
            return
        case .slice: try codec == .h264 ? receiveSliceH264(unit) : receiveSliceH265(unit)
        case .kept: break
        }
        guard bytes.count + unit.byteCount + 4 <= FormatLimits.frameBytesMax else { throw .limit("bytes of a frame") }
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: unit.byteCount))
        bytes.append(unit)
    }

    /// Takes the NAL units of a byte stream with start codes.
    package mutating func append(annexB stream: RawSpan) throws(FormatError) {
        var cursor = AnnexBCursor(stream)
        while let unit = try cursor.next() { try append(unit) }
    }

    /// Takes NAL units after their lengths.
    /// - Parameter lengthBytes: 1, 2 or 4.
    package mutating func append(lengthPrefixed units: RawSpan, lengthBytes: Int) throws(FormatError) {
        var cursor = LengthPrefixedCursor(units, lengthBytes: lengthBytes)
        while let unit = try cursor.next() { try append(unit) }
    }

    /// Ends the access unit. What was received since is forgotten, parameter sets excepted.
    /// - Parameter isMarkedKey: whether the container marks a key picture. It then counts as one when all slices are
    ///   intra, as in streams that refresh gradually and have no IDR pictures.
    /// - Returns: `nil` when there was no slice.
    package mutating func finish(isMarkedKey: Bool = false) -> AccessUnit? {
        defer { reset() }
        guard hasSlice else { return nil }
        let isKey = isKey || isMarkedKey && isIntra
        var changed: CodecConfiguration?
        if hasNewSets, isKey { changed = configuration }
        if changed != nil { hasNewSets = false }
        return AccessUnit(
            bytes: bytes,
            isKey: isKey,
            isDiscardable: isDiscardable && !isKey,
            hasBSlices: hasBSlices,
            configuration: changed
        )
    }

    /// Forgets the NAL units since the last access unit, after a loss.
    package mutating func reset() {
        bytes = []
        unitCount = 0
        (hasSlice, isKey, hasBSlices) = (false, false, false)
        (isDiscardable, isIntra) = (true, true)
    }

    /// By H.264 table 7-1.
    private func roleH264(of unit: RawSpan) -> Role {
        switch unit.byte(at: 0) & 0x1F {
        case 1, 2, 5: .slice
        case 3, 4: .kept
        case 6: unit.byteCount <= Self.messageBytesMax ? .kept : .left
        case 7, 8: .parameterSet
        // Delimiter, end of sequence and stream, filler, and extensions that base decoders ignore.
        default: .left
        }
    }

    /// By H.265 table 7-1.
    private func roleH265(of unit: RawSpan) -> Role {
        // Other layers (nuh_layer_id) are extensions that base decoders ignore.
        let layer = (unit.byte(at: 0) & 1) << 5 | unit.byte(at: 1) >> 3
        guard layer == 0 else { return .left }
        return switch unit.byte(at: 0) >> 1 & 0x3F {
        case 0...9, 16...21: .slice
        case 32...34: .parameterSet
        case 39, 40: unit.byteCount <= Self.messageBytesMax ? .kept : .left
        default: .left
        }
    }

    private mutating func receiveSliceH264(_ unit: RawSpan) throws(FormatError) {
        let slice = try H264SliceHeader(unit)
        hasSlice = true
        isKey = isKey || slice.isIDR
        isDiscardable = isDiscardable && !slice.isReference
        isIntra = isIntra && slice.type == .intra
        hasBSlices = hasBSlices || slice.type == .bipredicted
    }

    private mutating func receiveSliceH265(_ unit: RawSpan) throws(FormatError) {
        let sets = sets
        let slice = try H265SliceHeader(unit) { sets.extraBits(of: $0) }
        hasSlice = true
        isKey = isKey || slice.isRandomAccess
        let isHighest = Int(slice.temporalID) + 1 >= sets.subLayers
        isDiscardable = isDiscardable && slice.isSubLayerNonReference && isHighest
        isIntra = isIntra && (slice.type ?? .intra) == .intra
        hasBSlices = hasBSlices || slice.type == .bipredicted
    }
}
