import Base

/// Reads bytes of a file: `count` bytes from `offset` on, fewer at the end of the file, `nil` when the file cannot be
/// read.
package typealias FileReader = (_ offset: UInt64, _ count: Int) -> [UInt8]?

/// A `moof` of a file, read back.
struct MP4Fragment {
    /// The samples of one track.
    struct Run {
        let track: UInt32
        let description: UInt32
        let decodeTime: UInt64
        /// From the start of `moof` to the first sample.
        let dataOffset: UInt32
        let count: Int
        fileprivate let duration: UInt32?
        fileprivate let flags: UInt32?
        fileprivate let hasOffsets: Bool
        /// The entries of `trun`.
        fileprivate let entries: Range<Int>
        /// The bytes of all samples.
        fileprivate(set) var dataLength: UInt64 = 0
    }
    /// One sample as `trun` tells it.
    struct Entry {
        var duration: UInt32 = 0
        var size: UInt32 = 0
        var flags: UInt32 = 0
        var compositionOffset: Int32 = 0

        var isKey: Bool { flags & 0x01_00_00 == 0 }
    }

    let bytes: [UInt8]
    private(set) var runs: [Run] = []

    /// Reads `moof` with its header.
    init(_ bytes: [UInt8]) throws(FormatError) {
        self.bytes = bytes
        let fragment = try BoxSpan.first("moof", in: bytes, 0..<bytes.count)
        for box in try BoxSpan.all(in: bytes, fragment.body) where box.type == "traf" {
            runs.append(try readRun(box.body))
        }
        guard !runs.isEmpty else { throw .invalid("a fragment: it has no track") }
    }

    private func readRun(_ range: Range<Int>) throws(FormatError) -> Run {
        let header = try BoxSpan.first("tfhd", in: bytes, range)
        let time = try BoxSpan.first("tfdt", in: bytes, range)
        let table = try BoxSpan.first("trun", in: bytes, range)
        let all = unsafe bytes.span.bytes
        var reader = ByteReader(all.extracting(header.body), "tfhd")
        let headerFlags = try reader.uint32() & 0xFF_FF_FF
        let track = try reader.uint32()
        // base_data_offset and default_sample_size are not written here.
        guard headerFlags & 0x02_00_00 != 0, headerFlags & 0x11 == 0 else { throw .unsupported("this tfhd") }
        let description = headerFlags & 0x02 != 0 ? try reader.uint32() : 1
        let duration = headerFlags & 0x08 != 0 ? try reader.uint32() : nil
        let flags = headerFlags & 0x20 != 0 ? try reader.uint32() : nil
        var timeReader = ByteReader(all.extracting(time.body), "tfdt")
        guard try timeReader.uint8() == 1 else { throw .unsupported("this tfdt") }
        try timeReader.skip(3)
        let decodeTime = try timeReader.uint64()
        guard decodeTime < 1 << 62 else { throw .invalid("baseMediaDecodeTime") }
        var tableReader = ByteReader(all.extracting(table.body), "trun")
        let tableFlags = try tableReader.uint32() & 0xFF_FF_FF
        let count = Int(try tableReader.uint32())
        let hasDurations = tableFlags & 0x100 != 0
        let hasFlags = tableFlags & 0x400 != 0
        guard tableFlags & 0x205 == 0x201, hasDurations != (duration != nil), hasFlags != (flags != nil) else {
            throw .unsupported("this trun")
        }
        let dataOffset = try tableReader.uint32()
        guard (1...MP4FragmentBuilder.samplesMax).contains(count) else { throw .limit("samples of a fragment") }
        let hasOffsets = tableFlags & 0x800 != 0
        let width = 4 * (1 + (hasDurations ? 1 : 0) + (hasFlags ? 1 : 0) + (hasOffsets ? 1 : 0))
        guard count * width <= tableReader.remaining else { throw .truncated("trun") }
        let start = table.body.lowerBound + tableReader.offset
        var run = Run(
            track: track,
            description: description,
            decodeTime: decodeTime,
            dataOffset: dataOffset,
            count: count,
            duration: duration,
            flags: flags,
            hasOffsets: hasOffsets,
            entries: start..<(start + count * width)
        )
        var dataLength: UInt64 = 0
        forEach(run) { dataLength += UInt64($0.size) }
        run.dataLength = dataLength
        return run
    }

    /// Passes each sample of a run to `body`.
    func forEach<Failure>(_ run: Run, _ body: (Entry) throws(Failure) -> Void) throws(Failure) {
        let span = unsafe bytes.span.bytes
        var offset = run.entries.lowerBound
        func next() -> UInt32 {
            guard offset + 4 <= run.entries.upperBound else { return 0 }
            defer { offset += 4 }
            return span.bigEndianUInt32(at: offset)
        }
        for _ in 0..<run.count {
            var entry = Entry()
            entry.duration = run.duration ?? next()
            entry.size = next()
            entry.flags = run.flags ?? next()
            if run.hasOffsets { entry.compositionOffset = Int32(bitPattern: next()) }
            try body(entry)
        }
    }
}

/// A walk over the fragments of a file. It stops in front of what is not a whole fragment.
struct MP4FragmentWalk {
    /// The bytes of one `moof`, at most.
    static let movieFragmentBytesMax = 2 << 20

    private let read: FileReader
    private let length: UInt64
    /// Where the next fragment begins, or the file ends.
    private(set) var offset: UInt64
    /// Where the fragment that ``next()`` returned begins.
    private(set) var fragmentOffset: UInt64 = 0

    /// - Parameters:
    ///   - start: where the first fragment begins.
    ///   - length: the bytes of the file.
    init(from start: UInt64, length: UInt64, read: @escaping FileReader) {
        offset = start
        self.length = length
        self.read = read
    }

    /// The next fragment; `nil` in front of anything else, or of a fragment that is cut.
    mutating func next() throws(FormatError) -> MP4Fragment? {
        guard let head = try MP4BoxHeader.read(at: offset, length: length, read), head.type == "moof" else {
            return nil
        }
        guard head.size <= UInt64(Self.movieFragmentBytesMax) else { return nil }
        let dataOffset = offset + head.size
        guard let data = try MP4BoxHeader.read(at: dataOffset, length: length, read), data.type == "mdat" else {
            return nil
        }
        guard let bytes = read(offset, Int(head.size)) else { throw .unreadable }
        guard bytes.count == Int(head.size), let fragment = try? MP4Fragment(bytes) else { return nil }
        let end = head.size + data.size
        let isInside = fragment.runs.allSatisfy { run in
            UInt64(run.dataOffset) >= head.size + 8 && UInt64(run.dataOffset) + run.dataLength <= end
        }
        guard isInside else { return nil }
        fragmentOffset = offset
        offset = dataOffset + data.size
        return fragment
    }
}

/// The type and size of a box in a file.
struct MP4BoxHeader {
    let type: FourCC
    /// With the header.
    let size: UInt64
    /// 8, or 16 with a size of 64 bits.
    let headerBytes: Int

    /// - Returns: `nil` where no whole box begins.
    static func read(at offset: UInt64, length: UInt64, _ read: FileReader) throws(FormatError) -> Self? {
        guard offset < length, length - offset >= 8 else { return nil }
        let count = Int(min(16, length - offset))
        guard let bytes = read(offset, count) else { throw .unreadable }
        guard bytes.count >= 8 else { return nil }
        let span = unsafe bytes.span.bytes
        let type = FourCC(rawValue: span.bigEndianUInt32(at: 4))
        var size = UInt64(span.bigEndianUInt32(at: 0))
        var headerBytes = 8
        if size == 1 {
            guard bytes.count >= 16 else { return nil }
            size = span.bigEndianUInt64(at: 8)
            headerBytes = 16
        }
        guard size >= UInt64(headerBytes), size <= length - offset else { return nil }
        return Self(type: type, size: size, headerBytes: headerBytes)
    }
}
