package import MediaFormat

/// A file whose bytes are read and written at any place, each call waiting for the disk.
package protocol MediumFile {
    var length: UInt64 { get throws(MediumFailure) }
    /// Fewer bytes only at the file's end.
    func read(at offset: UInt64, count: Int) throws(MediumFailure) -> [UInt8]
    func write(_ bytes: [UInt8], at offset: UInt64) throws(MediumFailure)
    func truncate(to length: UInt64) throws(MediumFailure)
    /// Lets what was written survive a power cut.
    func synchronise() throws(MediumFailure)
}

/// Why a medium could not be made final.
package enum MediumFailure: Error, Hashable, Sendable {
    /// The disk failed, with the system's number.
    case system(Int32)
    /// The file has no frames.
    case empty
    /// The file is not one that ``MediumWriter`` wrote.
    case format(FormatError)
}

/// Makes an ordinary, seekable file of a medium, whether its writer ended or a crash did.
///
/// It may be stopped at any step and begun again: the file plays at any time, and its last write makes it final.
package enum MediumCompletion {
    /// What a medium became.
    package struct Outcome: Hashable, Sendable {
        /// The bytes of the file.
        package let length: UInt64
        /// From the file's start to its end; `nil` for one that was final already.
        package let durationMS: UInt64?
        /// Bytes of a broken fragment that were cut off.
        package let lostBytes: UInt64
    }
    /// A medium whose tables are on the disk, and that is not final yet.
    package struct Prepared: Hashable, Sendable {
        package let outcome: Outcome
        fileprivate let patches: [FileWrite]
    }

    /// Does both: ``prepare(_:_:)`` and ``seal(_:_:)``.
    package static func complete(_ file: some MediumFile, _ format: RecordingFormat) throws(MediumFailure) -> Outcome {
        let prepared = try prepare(file, format)
        try seal(file, prepared)
        return prepared.outcome
    }

    /// Cuts off what is broken, and writes the tables. The file plays as before.
    package static func prepare(_ file: some MediumFile, _ format: RecordingFormat) throws(MediumFailure) -> Prepared {
        let length = try file.length
        guard let whole = try wholeLength(file, format, length) else {
            return Prepared(outcome: Outcome(length: length, durationMS: nil, lostBytes: 0), patches: [])
        }
        if whole < length { try file.truncate(to: whole) }
        var end = whole
        var failure: MediumFailure?
        let write = { (bytes: [UInt8]) -> Bool in
            do throws(MediumFailure) {
                try file.write(bytes, at: end)
                end += UInt64(bytes.count)
                return true
            } catch {
                failure = error
                return false
            }
        }
        let patches: [FileWrite]
        let durationMS: UInt64
        do throws(MediumFailure) {
            (patches, durationMS) = try state(
                { (read) throws(FormatError) in
                    switch format {
                    case .mp4:
                        let done = try MP4Finaliser.complete(length: whole, read: read, write: write)
                        return ([done.patch], done.durationMS)
                    case .webm:
                        let done = try WebMFinaliser.complete(length: whole, read: read, write: write)
                        return (done.patches, done.durationMS)
                    }
                },
                file
            )
        } catch {
            throw failure ?? error
        }
        // The tables are on the disk before anything points to them.
        try file.synchronise()
        let outcome = Outcome(length: end, durationMS: durationMS, lostBytes: length - whole)
        return Prepared(outcome: outcome, patches: patches)
    }

    /// Makes a medium final.
    package static func seal(_ file: some MediumFile, _ prepared: Prepared) throws(MediumFailure) {
        guard !prepared.patches.isEmpty else { return }
        for patch in prepared.patches { try file.write(patch.bytes, at: patch.offset ?? prepared.outcome.length) }
        try file.synchronise()
    }

    /// The bytes of the whole fragments; `nil` for a file that is final.
    private static func wholeLength(
        _ file: some MediumFile,
        _ format: RecordingFormat,
        _ length: UInt64
    ) throws(MediumFailure) -> UInt64? {
        switch format {
        case .mp4:
            let state = try state(
                { (read) throws(FormatError) in try MP4FileState.inspect(length: length, read: read) },
                file
            )
            guard case .fragmented(let end, let fragments) = state else { return nil }
            guard fragments > 0 else { throw .empty }
            return end
        case .webm:
            let state = try state(
                { (read) throws(FormatError) in try WebMFileState.inspect(length: length, read: read) },
                file
            )
            guard case .clustered(let end, let clusters) = state else { return nil }
            guard clusters > 0 else { throw .empty }
            return end
        }
    }

    /// Lets a parser read the file, and tells the disk's failure from the file's.
    private static func state<Value>(
        _ parse: (@escaping FileReader) throws(FormatError) -> Value,
        _ file: some MediumFile
    ) throws(MediumFailure) -> Value {
        var failure: MediumFailure?
        let read: FileReader = { offset, count in
            do throws(MediumFailure) {
                return try file.read(at: offset, count: count)
            } catch {
                failure = error
                return nil
            }
        }
        do throws(FormatError) {
            return try parse(read)
        } catch {
            throw failure ?? .format(error)
        }
    }
}
