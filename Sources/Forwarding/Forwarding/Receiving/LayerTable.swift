import Base

/// What a track has to send: its encodings, the simulcast layers of W3C WebRTC, each with the bit rates of its spatial and
/// temporal layers.
///
/// The publisher's loop measures it and tells it to the mirrors of the track. A mirror's table names streams by their numbers
/// at the origin.
package struct LayerTable: Equatable, Sendable {
    /// One stream of the track.
    package struct Encoding: Equatable, Sendable {
        var stream: UInt64
        /// Its place among the track's rids; at or above their number without layers.
        var place: Int
        /// Bit/s that the stream was last seen to carry; a pause does not lower it.
        var bitrate: Int
        var isFlowing: Bool
        package var layers = EncodingLayers()
        /// Of the newest key frame; 0 while none was measured.
        package var keyFrameBytes = 0

        package init(
            stream: UInt64,
            place: Int,
            bitrate: Int,
            isFlowing: Bool,
            layers: EncodingLayers = EncodingLayers(),
            keyFrameBytes: Int = 0
        ) {
            self.stream = stream
            self.place = place
            self.bitrate = bitrate
            self.isFlowing = isFlowing
            self.layers = layers
            self.keyFrameBytes = keyFrameBytes
        }
    }

    /// In the order of their beginning, at most ``ReceivedTrack/streamsMax``.
    package var encodings: [Encoding] = []
    /// Which stream each choice names while the rate has no limit.
    var resolution = LayerResolution()
    /// The publisher says that it shares a screen.
    var isScreen = false
}

extension LayerTable {
    package init(encodings: [Encoding]) { self.init(encodings: encodings, resolution: LayerResolution()) }
}

/// The spatial and temporal layers of one stream.
package struct EncodingLayers: BitwiseCopyable, Equatable, Sendable {
    package init() {}

    /// Layers that are told apart; those beyond count as the highest.
    static let spatialMax = 4
    static let temporalMax = 4
    private var rates: [16 of UInt32] = .init(repeating: 0)
    /// Width in the upper half, height in the lower one; 0 while it is not known.
    private var sizes: [4 of UInt32] = .init(repeating: 0)

    /// The place of a layer among those of a stream, by the two numbers that its packets name.
    @inline(__always)
    static func index(spatialID: UInt8, temporalID: UInt8) -> Int {
        min(Int(spatialID), spatialMax - 1) * temporalMax + min(Int(temporalID), temporalMax - 1)
    }

    /// Bit/s of one layer by itself, without the lower ones that it needs. `index` is that of ``index(spatialID:temporalID:)``.
    package subscript(index: Int) -> Int {
        get { Int(rates[index]) }
        set { rates[index] = UInt32(clamping: newValue) }
    }

    /// The size of a spatial layer in pixels; `nil` while it is not known.
    func size(ofSpatial spatialID: Int) -> (width: Int, height: Int)? {
        guard spatialID >= 0, spatialID < Self.spatialMax, sizes[spatialID] != 0 else { return nil }
        return (Int(sizes[spatialID] >> 16), Int(sizes[spatialID] & 0xFFFF))
    }

    /// Notes the size of a spatial layer. One that no layer has is ignored.
    package mutating func setSize(ofSpatial spatialID: Int, width: Int, height: Int) {
        guard spatialID >= 0, spatialID < Self.spatialMax, let width = UInt16(exactly: width),
            let height = UInt16(exactly: height)
        else { return }
        sizes[spatialID] = UInt32(width) << 16 | UInt32(height)
    }

    /// Bit/s that a receiver is sent which gets the layers up to these two: of every spatial layer up to `spatialID` the
    /// temporal layers up to `temporalID`. Both are 0…3.
    func bitrate(upToSpatial spatialID: Int, temporal temporalID: Int) -> Int {
        var sum = 0
        for spatial in 0...min(max(spatialID, 0), Self.spatialMax - 1) {
            for temporal in 0...min(max(temporalID, 0), Self.temporalMax - 1) {
                sum += Int(rates[spatial * Self.temporalMax + temporal])
            }
        }
        return sum
    }

    package static func == (left: Self, right: Self) -> Bool {
        for index in 0..<(spatialMax * temporalMax) where left.rates[index] != right.rates[index] { return false }
        for index in 0..<spatialMax where left.sizes[index] != right.sizes[index] { return false }
        return true
    }
}

// MARK: - From loop to loop

extension LayerTable {
    private static let bytesPerEncoding = 8 + 1 + 1 + 4 + 4 * 16 + 4 * 4 + 4
    private static let flowingFlag: UInt8 = 1
    private static let screenFlag: UInt8 = 2

    /// Appends encodings to `bytes`, big-endian. The resolution goes with the packets.
    static func encode(_ encodings: [Encoding], isScreen: Bool = false, to bytes: inout [UInt8]) {
        bytes.reserveCapacity(bytes.count + encodings.count * bytesPerEncoding)
        for encoding in encodings {
            bytes.append(bigEndian: encoding.stream)
            bytes.append(UInt8(clamping: encoding.place))
            bytes.append((encoding.isFlowing ? flowingFlag : 0) | (isScreen ? screenFlag : 0))
            bytes.append(bigEndian: UInt32(clamping: encoding.bitrate))
            encoding.layers.append(to: &bytes)
            bytes.append(bigEndian: UInt32(clamping: encoding.keyFrameBytes))
        }
    }

    /// Reads encodings into an array, in place of what it held and within its capacity.
    /// - Returns: whether the track shows a screen; `nil`, and nothing changed, when the bytes are no encodings.
    static func decode(_ bytes: RawSpan, into encodings: inout [Encoding]) -> Bool? {
        guard bytes.byteCount.isMultiple(of: bytesPerEncoding),
            bytes.byteCount / bytesPerEncoding <= ReceivedTrack.streamsMax
        else { return nil }
        var isScreen = false
        encodings.removeAll(keepingCapacity: true)
        var offset = 0
        while offset < bytes.byteCount {
            let flags = bytes.byte(at: offset + 9)
            if flags & screenFlag != 0 { isScreen = true }
            encodings.append(
                Encoding(
                    stream: bytes.bigEndianUInt64(at: offset),
                    place: Int(bytes.byte(at: offset + 8)),
                    bitrate: Int(bytes.bigEndianUInt32(at: offset + 10)),
                    isFlowing: flags & flowingFlag != 0,
                    layers: EncodingLayers(bytes, at: offset + 14),
                    keyFrameBytes: Int(bytes.bigEndianUInt32(at: offset + bytesPerEncoding - 4))
                )
            )
            offset += bytesPerEncoding
        }
        return isScreen
    }
}

extension EncodingLayers {
    fileprivate func append(to bytes: inout [UInt8]) {
        for index in 0..<(Self.spatialMax * Self.temporalMax) { bytes.append(bigEndian: rates[index]) }
        for index in 0..<Self.spatialMax { bytes.append(bigEndian: sizes[index]) }
    }

    fileprivate init(_ bytes: RawSpan, at offset: Int) {
        for index in 0..<(Self.spatialMax * Self.temporalMax) {
            rates[index] = bytes.bigEndianUInt32(at: offset + 4 * index)
        }
        let start = offset + 4 * Self.spatialMax * Self.temporalMax
        for index in 0..<Self.spatialMax { sizes[index] = bytes.bigEndianUInt32(at: start + 4 * index) }
    }
}
