import Base

/// The state of an MP4 recording: complete, or left by a crash.
package enum MP4FileState: Hashable, Sendable {
    /// The file was completed: nothing is to be done.
    case finalised
    /// The file is to be cut to `length` bytes, the end of its last whole fragment, and finalised.
    case fragmented(length: UInt64, fragments: Int)

    /// The parts of a recording's start.
    struct Layout {
        /// The box that becomes `mdat`.
        let placeholder: UInt64
        let isPatched: Bool
        let movie: Range<UInt64>
        let firstFragment: UInt64
    }

    /// The bytes of the `moov` at the start, at most.
    static let movieBytesMax: UInt64 = 64 << 10

    /// Looks at a file that ``MP4RecordingWriter`` wrote, however it was cut. Reads the headers of boxes and each
    /// `moof`.
    /// - Parameters:
    ///   - length: the bytes of the file.
    ///   - read: reads bytes of it.
    /// - Throws: when the file was cut within the `moov` of its header, so that nothing of it is readable. One that was cut behind
    ///   that has no fragments.
    package static func inspect(length: UInt64, read: @escaping FileReader) throws(FormatError) -> Self {
        let layout = try readLayout(length: length, read)
        if layout.isPatched {
            // The patch is written last, when `moov` is whole.
            return .finalised
        }
        var walk = MP4FragmentWalk(from: layout.firstFragment, length: length, read: read)
        var count = 0
        while try walk.next() != nil { count += 1 }
        return .fragmented(length: walk.offset, fragments: count)
    }

    static func readLayout(length: UInt64, _ read: FileReader) throws(FormatError) -> Layout {
        guard let type = try MP4BoxHeader.read(at: 0, length: length, read), type.type == "ftyp" else {
            throw .invalid("the start of the file")
        }
        let placeholder = type.size
        let placeholderBytes = UInt64(MP4Header.placeholderBytes)
        guard let box = try MP4BoxHeader.read(at: placeholder, length: length, read) else {
            throw .truncated("the header of the file")
        }
        let isPatched = box.type == "mdat" && box.headerBytes == MP4Header.placeholderBytes
        guard isPatched || box.type == "free" && box.size == placeholderBytes else {
            throw .invalid("the header of the file")
        }
        let movie = placeholder + placeholderBytes
        guard let movieBox = try MP4BoxHeader.read(at: movie, length: length, read), movieBox.type == "moov",
            movieBox.size <= movieBytesMax
        else { throw .truncated("the header of the file") }
        var first = movie + movieBox.size
        if let rest = try MP4BoxHeader.read(at: first, length: length, read), rest.type == "free" { first += rest.size }
        return Layout(
            placeholder: placeholder,
            isPatched: isPatched,
            movie: movie..<(movie + movieBox.size),
            firstFragment: first
        )
    }
}
