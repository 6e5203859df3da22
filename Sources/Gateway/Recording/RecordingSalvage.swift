import Base
package import JSON
import MediaFormat

/// A step of what ends a recording that a crash left.
package enum SalvageStep: Hashable, Sendable {
    /// The file's tables are written with ``MediumCompletion/prepare(_:_:)``; then ``RecordingSalvage/prepared(_:)`` or
    /// ``RecordingSalvage/failed()``.
    case prepare(name: String, RecordingFormat)
    /// The file that was prepared last is made final with ``MediumCompletion/seal(_:_:)``.
    case seal(name: String)
    /// The file is replaced as a whole, and is on the disk before the next step.
    case store(name: String, JSONValue)
    /// The file gets its name.
    case rename(from: String, to: String)
    case remove(name: String)
}

/// Ends a recording that a crash left: completes its media, names them, writes their metadata and the report.
///
/// It may be stopped at any step and begun again, and comes to the same end: what is done already is seen in the journal and in the
/// folder. The journal knows a medium's length before the medium is final, and a medium has its name before its metadata are there.
package struct RecordingSalvage: Sendable {
    private var journal: RecordingJournal
    private let layout: RecordingLayout
    private let documents: RecordingDocuments
    private let connections: [String: RecordedConnection]
    private var files: Set<String>
    private var index = 0
    /// What follows for the medium at the index.
    private var steps: [SalvageStep] = []
    private var isReported = false
    private var isRemoved = false

    /// The media that the report tells.
    package private(set) var media: [RecordedMedium] = []

    /// - Parameters:
    ///   - journal: of the recording.
    ///   - folder: its folder, for the documents.
    ///   - files: the names in it.
    /// - Returns: `nil` for a journal that names no folder.
    package init?(_ journal: RecordingJournal, folder: String, files: some Sequence<String>) {
        guard let layout = RecordingLayout(recordingID: journal.recordingID) else { return nil }
        self.journal = journal
        self.layout = layout
        self.files = Set(files)
        connections = Dictionary(journal.connections.map { ($0.connectionID, $0) }) { first, _ in first }
        documents = RecordingDocuments(
            layout,
            request: journal.request,
            channelID: journal.channelID,
            sessionID: journal.sessionID,
            folder: folder,
            startNanoseconds: journal.startNanoseconds
        )
    }

    /// The next step; `nil` at the end. It is to be done before the one after it is asked for.
    package mutating func next() -> SalvageStep? {
        while steps.isEmpty, index < journal.media.count { look() }
        if !steps.isEmpty { return steps.removeFirst() }
        if !isReported {
            isReported = true
            return .store(name: layout.reportName, report)
        }
        // Without the journal the recording has ended.
        guard !isRemoved else { return nil }
        isRemoved = true
        return .remove(name: RecordingLayout.journalName)
    }

    /// The tables of the medium are on the disk.
    package mutating func prepared(_ outcome: MediumCompletion.Outcome) {
        guard let names = names, index < journal.media.count else { return }
        let format = journal.media[index].format
        // One that is final already is in the journal with its length.
        if let duration = outcome.durationMS {
            journal.media[index].completed = RecordingJournal.Completed(
                bytes: outcome.length,
                durationMS: duration,
                isInterrupted: true
            )
            steps.append(.store(name: RecordingLayout.journalName, journal.document))
        }
        steps.append(.seal(name: names.temporary(format)))
        steps.append(.rename(from: names.temporary(format), to: names.medium(format)))
        files.insert(names.medium(format))
        finishMedium()
    }

    /// The medium has nothing that can be saved.
    package mutating func failed() {
        guard let names = names, index < journal.media.count else { return }
        let medium = journal.media[index]
        if let connection = connections[medium.connectionID] {
            let failure = FailedArchive(connection, reason: "INTERRUPTED")
            // An earlier attempt may have noted it.
            if !journal.failures.contains(failure) { journal.failures.append(failure) }
        }
        steps.append(.store(name: RecordingLayout.journalName, journal.document))
        steps.append(.remove(name: names.temporary(medium.format)))
        index += 1
    }

    // MARK: - Media

    private var names: MediumNames? { index < journal.media.count ? journal.media[index].names(layout) : nil }

    /// Decides what is to be done for the medium at the index.
    private mutating func look() {
        let medium = journal.media[index]
        guard let names, connections[medium.connectionID] != nil else {
            index += 1
            return
        }
        if files.remove(names.temporary(medium.format)) != nil {
            steps.append(.prepare(name: names.temporary(medium.format), medium.format))
        } else {
            finishMedium()
        }
    }

    /// Lets the medium at the index have its metadata and its place in the report, if it is there.
    private mutating func finishMedium() {
        defer { index += 1 }
        let medium = journal.media[index]
        guard let names, let connection = connections[medium.connectionID], let completed = medium.completed,
            files.contains(names.medium(medium.format))
        else { return }
        let recorded = recorded(medium, names, connection, completed)
        media.append(recorded)
        if files.insert(names.metadata).inserted {
            steps.append(.store(name: names.metadata, documents.archive(recorded)))
        }
    }

    private func recorded(
        _ medium: RecordingJournal.Medium,
        _ names: MediumNames,
        _ connection: RecordedConnection,
        _ completed: RecordingJournal.Completed
    ) -> RecordedMedium {
        RecordedMedium(
            ArchiveMedium(
                names: names,
                format: medium.format,
                splitIndex: medium.splitIndex,
                length: completed.bytes,
                origin: .zero,
                duration: .milliseconds(Int(clamping: completed.durationMS)),
                tracks: medium.tracks,
                rotation: medium.rotation,
                gaps: []
            ),
            of: connection,
            bytes: completed.bytes,
            startNanoseconds: medium.startNanoseconds,
            isInterrupted: completed.isInterrupted
        )
    }

    private var report: JSONValue {
        let stop = media.map(\.stopNanoseconds).max() ?? journal.startNanoseconds
        return documents.report(media, failures: journal.failures, stopNanoseconds: stop, reason: "INTERRUPTED")
    }
}
