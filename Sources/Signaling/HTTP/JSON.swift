import NIOCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A value as JSON with sorted keys, so that equal values have equal bytes. The types encoded here cannot fail.
func encodedJSON(_ value: some Encodable) -> ByteBuffer {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return ByteBuffer(bytes: (try? encoder.encode(value)).map(Array.init) ?? Array("{}".utf8))
}
