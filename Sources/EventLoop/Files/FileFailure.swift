import Glibc

/// Why an operation on a file failed.
package struct FileFailure: Error, Hashable, Sendable {
    /// The system's number (errno).
    package let number: Int32
    /// What was to be done, such as "write".
    package let operation: String

    package init(number: Int32, operation: String) {
        self.number = number
        self.operation = operation
    }

    /// No space or no quota is left.
    package var isDiskFull: Bool { number == ENOSPC || number == EDQUOT }
    /// The file or folder is not there.
    package var isMissing: Bool { number == ENOENT }
    /// The file or folder is there already.
    package var isTaken: Bool { number == EEXIST }

    /// Such as "write: No space left on device".
    package var message: String { "\(operation): \(systemMessage(number))" }
}

/// How a file is opened.
package enum FileOpening: Sendable {
    /// A new file for writing and reading; it fails where there is one.
    case create
    /// A file that is there, for writing and reading.
    case change
    case read
    /// A folder, for ``LoopFiles/synchronise(_:isDataOnly:then:)``: what it names survives a power cut from then on.
    case folder

    /// As `open` takes them. A link in place of a file is not followed.
    var flags: Int32 {
        let common = O_CLOEXEC | O_NOFOLLOW
        return switch self {
        case .create: common | O_RDWR | O_CREAT | O_EXCL
        case .change: common | O_RDWR
        case .read: common | O_RDONLY
        case .folder: O_CLOEXEC | O_RDONLY | O_DIRECTORY
        }
    }
}

/// An open file. Only its ``LoopFiles`` uses the number.
package struct OpenFile: Hashable, Sendable {
    let descriptor: Int32
}

/// The space of the file system that a folder is on.
package struct DiskSpace: Hashable, Sendable {
    package let totalBytes: UInt64
    /// What programs without privileges may fill.
    package let freeBytes: UInt64

    package init(totalBytes: UInt64, freeBytes: UInt64) {
        self.totalBytes = totalBytes
        self.freeBytes = freeBytes
    }
}

/// A name in a folder.
package struct FolderEntry: Hashable, Sendable {
    package let name: String
    package let isFolder: Bool

    package init(name: String, isFolder: Bool) {
        self.name = name
        self.isFolder = isFolder
    }
}
