/// The reason why bytes of a container, a codec configuration or a bitstream are refused.
package enum FormatError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The bytes end before the named part is complete.
    case truncated(String)
    /// The named field has a value that its specification does not allow.
    case invalid(String)
    /// The named limit of this module is exceeded.
    case limit(String)
    /// The named feature exists, but this module does not read or write it.
    case unsupported(String)
    /// The closure that reads the file returned nothing for bytes that the file has.
    case unreadable
    /// The closure that writes to the file refused the bytes.
    case unwritable

    /// A sentence about the cause.
    package var description: String {
        switch self {
        case .truncated(let part): "The bytes end within \(part)."
        case .invalid(let field): "The value of \(field) is not allowed."
        case .limit(let limit): "There is more than the limit of \(limit)."
        case .unsupported(let feature): "The format does not support \(feature)."
        case .unreadable: "The file cannot be read."
        case .unwritable: "The file cannot be written."
        }
    }
}

/// The limits of what is parsed and held; each is far above what encoders produce.
package enum FormatLimits {
    /// The greatest width and height of a picture, in pixels.
    package static let pixelsMax = 8_192
    /// The bytes of one parameter set (VPS, SPS or PPS).
    package static let parameterSetBytesMax = 4_096
    /// The parameter sets of one type.
    package static let parameterSetsMax = 32
    /// The bytes of all parameter sets of a stream. They stand before each key frame once they have changed.
    package static let parameterSetsBytesMax = 16 << 10
    /// The NAL units of one access unit.
    package static let unitsMax = 512
    /// The OBUs of one temporal unit.
    package static let obusMax = 512
    /// The bytes of one frame, 16 MiB: what the 24 bits of an FLV tag's length allow.
    package static let frameBytesMax = 16 << 20
    /// The bytes of one codec configuration record.
    package static let configurationBytesMax = 64 << 10
    /// The audio channels of one track.
    package static let channelsMax = 8
}
