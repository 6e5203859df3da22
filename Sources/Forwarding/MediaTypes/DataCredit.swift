internal import Synchronization

/// How much received data its readers may hold at a time. What exceeds it stays in the receive window of its sender, so that a
/// reader that is behind slows down the sender and holds no more memory.
public final class DataCredit: Sendable {
    /// What a credit has room for even while those that share its parent have taken all of that: a few messages. In this way the
    /// parent's bytes may be exceeded once over.
    public static let partBytes = 16 << 10

    private let bytesMax: Int
    private let parent: DataCredit?
    private let taken = Atomic<Int>(0)

    /// - Parameters:
    ///   - bytesMax: the bytes that may be held. One message more may exceed them.
    ///   - parent: counts the same bytes together with those of others.
    public init(bytesMax: Int, parent: DataCredit? = nil) {
        self.bytesMax = bytesMax
        self.parent = parent
    }

    /// Bytes that are held, overheads included.
    public var bytesTaken: Int { taken.load(ordering: .relaxed) }
    /// Whether more may be handed out. Senders whose messages wait stop nobody else's.
    public var hasRoom: Bool {
        let taken = bytesTaken
        guard taken < bytesMax, let parent, !parent.hasRoom else { return taken < bytesMax }
        return taken < Self.partBytes && parent.bytesTaken < 2 * parent.bytesMax
    }

    /// Takes the cost of one event from the credit until the lease is gone.
    public func lease(bytes: Int) -> DataLease { DataLease(bytes: bytes, of: self) }

    fileprivate func take(_ bytes: Int) {
        taken.wrappingAdd(bytes, ordering: .relaxed)
        parent?.take(bytes)
    }

    fileprivate func give(_ bytes: Int) {
        taken.wrappingSubtract(bytes, ordering: .relaxed)
        parent?.give(bytes)
    }
}

/// A part of a ``DataCredit``, given back when nobody holds it any more.
public final class DataLease: Sendable, Equatable {
    /// What an event costs besides its bytes.
    private static let overheadBytes = 512

    private let bytes: Int
    private let credit: DataCredit
    /// The lease that this one adds to.
    private let base: DataLease?

    fileprivate init(bytes: Int, of credit: DataCredit) {
        self.bytes = bytes + Self.overheadBytes
        self.credit = credit
        base = nil
        credit.take(self.bytes)
    }

    private init(extending base: DataLease, by bytes: Int) {
        self.bytes = bytes
        credit = base.credit
        self.base = base
        credit.take(bytes)
    }

    deinit { credit.give(bytes) }

    /// This lease with the bytes of what was made of the received message: its content, or another form of it.
    public func extended(by bytes: Int) -> DataLease { DataLease(extending: self, by: max(bytes, 0)) }

    public static func == (left: DataLease, right: DataLease) -> Bool { left === right }
}
