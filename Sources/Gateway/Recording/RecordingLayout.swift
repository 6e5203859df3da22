/// The names of a recording's files, as Sora's uploader and Hisui look for them.
///
/// A medium has a temporary name until it is final. Its metadata are written after it: a program that finds them finds the
/// medium, too.
package struct RecordingLayout: Hashable, Sendable {
    /// The bytes of an identifier in a name. Names of files have 255 at most.
    package static let identifierBytesMax = 128
    /// What is written about a recording that goes on; it is what is left of one that a crash ended.
    package static let journalName = "recording.json"
    /// Behind the name of a medium that is not final.
    package static let temporarySuffix = ".part"

    /// Of letters, digits, `-` and `_`: it is the folder's name.
    package let recordingID: String

    /// `nil` unless ``isIdentifier(_:)``.
    package init?(recordingID: String) {
        guard Self.isIdentifier(recordingID) else { return nil }
        self.recordingID = recordingID
    }

    /// Whether a text can be part of a file's name: 1 to ``identifierBytesMax`` letters, digits, `-` and `_`. It then leaves no
    /// folder, whoever chose it.
    package static func isIdentifier(_ text: String) -> Bool {
        (1...identifierBytesMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// The report of the whole recording, which is written last.
    package var reportName: String { "report-\(recordingID).json" }

    /// The whole of a connection.
    /// - Parameter number: from 1. A connection whose tracks do not fit into one file has further ones.
    package func archive(_ connectionID: String, number: Int = 1) -> MediumNames? {
        let suffix = number > 1 ? "-\(number)" : ""
        return MediumNames(base: "archive-\(connectionID)\(suffix)", identifier: connectionID)
    }

    /// A part of a connection.
    /// - Parameter index: from 1; four digits at least.
    package func split(_ connectionID: String, index: Int) -> MediumNames? {
        let base = "split-archive-\(connectionID)_\(Self.splitIndex(index))"
        return MediumNames(base: base, identifier: connectionID)
    }

    /// What is written when the last part of a connection is there.
    package func splitEnd(_ connectionID: String) -> String? {
        Self.isIdentifier(connectionID) ? "split-archive-end-\(connectionID).json" : nil
    }

    /// A part's number as Sora writes it: `0001`.
    package static func splitIndex(_ index: Int) -> String {
        let digits = String(index)
        return String(repeating: "0", count: max(4 - digits.count, 0)) + digits
    }
}

/// The names of a medium and of its metadata.
package struct MediumNames: Hashable, Sendable {
    private let base: String

    fileprivate init?(base: String, identifier: String) {
        guard RecordingLayout.isIdentifier(identifier) else { return nil }
        self.base = base
    }

    package var metadata: String { base + ".json" }

    package func medium(_ format: RecordingFormat) -> String { "\(base).\(format.fileExtension)" }

    /// The name until the medium is final.
    package func temporary(_ format: RecordingFormat) -> String { medium(format) + RecordingLayout.temporarySuffix }
}
