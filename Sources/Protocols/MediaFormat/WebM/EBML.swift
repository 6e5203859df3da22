import Base

/// The identifiers of the elements that WebM files get (RFC 8794, RFC 9559 §5.1).
enum EBMLElement: UInt32 {
    case header = 0x1A45_DFA3
    case version = 0x4286
    case readVersion = 0x42F7
    case identifierLengthMax = 0x42F2
    case sizeLengthMax = 0x42F3
    case documentType = 0x4282
    case documentTypeVersion = 0x4287
    case documentTypeReadVersion = 0x4285
    case void = 0xEC
    case segment = 0x1853_8067
    case seekHead = 0x114D_9B74
    case seek = 0x4DBB
    case seekIdentifier = 0x53AB
    case seekPosition = 0x53AC
    case information = 0x1549_A966
    case timestampScale = 0x2A_D7B1
    case duration = 0x4489
    case muxingApplication = 0x4D80
    case writingApplication = 0x5741
    case tracks = 0x1654_AE6B
    case trackEntry = 0xAE
    case trackNumber = 0xD7
    case trackIdentifier = 0x73C5
    case trackType = 0x83
    case lacing = 0x9C
    case codecIdentifier = 0x86
    case codecPrivate = 0x63A2
    case codecDelay = 0x56AA
    case seekPreRoll = 0x56BB
    case video = 0xE0
    case pixelWidth = 0xB0
    case pixelHeight = 0xBA
    case projection = 0x7670
    case projectionType = 0x7671
    case projectionRoll = 0x7675
    case audio = 0xE1
    case samplingFrequency = 0xB5
    case channels = 0x9F
    case cluster = 0x1F43_B675
    case timestamp = 0xE7
    case simpleBlock = 0xA3
    case cues = 0x1C53_BB6B
    case cuePoint = 0xBB
    case cueTime = 0xB3
    case cueTrackPositions = 0xB7
    case cueTrack = 0xF7
    case cueClusterPosition = 0xF1

    /// The identifier's bytes, which include its length marker.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        var isStarted = false
        for shift in [24, 16, 8, 0] as [UInt32] {
            let byte = UInt8(truncatingIfNeeded: rawValue >> shift)
            isStarted = isStarted || byte != 0
            if isStarted { bytes.append(byte) }
        }
        return bytes
    }
}

/// Appends EBML elements (RFC 8794 §5…7).
struct EBMLWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ element: EBMLElement, _ data: [UInt8]) {
        bytes += element.bytes
        append(size: data.count)
        bytes += data
    }
    /// An unsigned integer in as few bytes as it needs.
    mutating func append(_ element: EBMLElement, _ value: UInt64) {
        var data: [UInt8] = []
        data.append(bigEndian: value)
        let zeros = min(value.leadingZeroBitCount / 8, 7)
        append(element, Array(data.dropFirst(zeros)))
    }
    mutating func append(_ element: EBMLElement, _ value: Double) {
        var data: [UInt8] = []
        data.append(bigEndian: value.bitPattern)
        append(element, data)
    }
    mutating func append(_ element: EBMLElement, _ text: String) { append(element, Array(text.utf8)) }
    mutating func append(_ element: EBMLElement, _ body: (inout EBMLWriter) -> Void) {
        var inner = EBMLWriter()
        body(&inner)
        append(element, inner.bytes)
    }
    /// A Void element of `count` bytes with its header, 2…128.
    mutating func append(void count: Int) {
        append(.void, [UInt8](repeating: 0, count: max(count - 2, 0)))
    }
    mutating func append(_ data: [UInt8]) { bytes += data }

    /// A size in as few bytes as it needs; a value of all ones means unknown and gets a byte more.
    private mutating func append(size: Int) {
        var width = 1
        while width < 8, size >= 1 << (7 * width) - 1 { width += 1 }
        let marked = UInt64(clamping: size) | 1 << UInt64(7 * width)
        for index in stride(from: width - 1, through: 0, by: -1) {
            bytes.append(UInt8(truncatingIfNeeded: marked >> UInt64(8 * index)))
        }
    }
}

/// The header of an EBML element in bytes.
struct EBMLHeader {
    let identifier: UInt32
    /// The size of the body; `nil` for an unknown one.
    let size: UInt64?
    let headerBytes: Int

    /// - Returns: `nil` where no header is.
    init?(_ bytes: RawSpan) {
        guard bytes.byteCount >= 2 else { return nil }
        let width = bytes.byte(at: 0).leadingZeroBitCount + 1
        guard width <= 4, bytes.byteCount > width else { return nil }
        var identifier: UInt32 = 0
        for offset in 0..<width { identifier = identifier << 8 | UInt32(bytes.byte(at: offset)) }
        let sizeWidth = bytes.byte(at: width).leadingZeroBitCount + 1
        guard sizeWidth <= 8, bytes.byteCount >= width + sizeWidth else { return nil }
        var size: UInt64 = 0
        for offset in width..<(width + sizeWidth) { size = size << 8 | UInt64(bytes.byte(at: offset)) }
        let mask = (1 as UInt64) << UInt64(7 * sizeWidth) - 1
        size &= mask
        self.identifier = identifier
        self.size = size == mask ? nil : size
        headerBytes = width + sizeWidth
    }
}
