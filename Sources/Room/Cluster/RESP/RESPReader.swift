internal import CHiredis

/// Reads replies of the Redis protocol from pieces of a byte stream, without I/O.
///
/// What it holds is bounded: an incomplete reply of ``replyBytesMax``. After an error the stream is lost, because
/// nothing tells where the next reply starts.
@safe
package final class RESPReader {
    /// The most bytes of one reply, in which each value counts at least ``valueBytes``. The longest that is expected,
    /// the answer to a heartbeat with 64 records of 400 B, has 30 kB.
    package static let replyBytesMax = 1 << 20
    /// The most arrays around a value.
    static let depthMax = 7
    /// What a value counts besides its own bytes, about what it takes in memory.
    static let valueBytes = 16
    /// The shortest value on the wire: `:0\r\n`.
    private static let wireBytesMin = 4

    private let reader: UnsafeMutablePointer<redisReader>
    private let functions: UnsafeMutablePointer<redisReplyObjectFunctions>
    private let assembly = ReplyAssembly()
    private var failure: RESPError?

    /// - Throws: ``RESPError/noMemory``.
    package init() throws(RESPError) {
        let functions = UnsafeMutablePointer<redisReplyObjectFunctions>.allocate(capacity: 1)
        unsafe functions.initialize(to: ReplyAssembly.functions)
        guard let reader = unsafe redisReaderCreateWithFunctions(functions) else {
            unsafe functions.deallocate()
            throw .noMemory
        }
        unsafe self.reader = reader
        unsafe self.functions = functions
        unsafe reader.pointee.privdata = Unmanaged.passUnretained(assembly).toOpaque()
    }

    deinit {
        unsafe redisReaderFree(reader)
        unsafe functions.deallocate()
    }

    /// Takes the next bytes of the stream. Call ``next()`` until it returns `nil` before the next piece.
    package func feed(_ bytes: RawSpan) {
        guard failure == nil else { return }
        guard unsafe reader.pointee.len &- reader.pointee.pos + bytes.byteCount <= Self.replyBytesMax * 2 else {
            failure = .tooLong
            return
        }
        let result = unsafe bytes.withUnsafeBytes { buffer in
            unsafe redisReaderFeed(reader, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
        }
        if result != REDIS_OK { failure = .noMemory }
    }

    /// The next complete reply; `nil` when more bytes are needed.
    package func next() throws(RESPError) -> RESPValue? {
        if let failure { throw failure }
        var reply: UnsafeMutableRawPointer?
        let result = unsafe redisReaderGetReply(reader, &reply)
        guard result == REDIS_OK else { throw fail(assembly.failure) }
        if unsafe reply != nil, let value = assembly.take() { return value }
        guard unsafe reader.pointee.len &- reader.pointee.pos <= Self.replyBytesMax else { throw fail(.tooLong) }
        return nil
    }

    private func fail(_ known: RESPError?) -> RESPError {
        let isMemory = unsafe reader.pointee.err == REDIS_ERR_OOM
        let error = known ?? (isMemory ? .noMemory : .malformed)
        failure = error
        return error
    }

    /// Whether an array of `count` elements can fit in a reply.
    static func canHold(_ count: Int) -> Bool { count <= replyBytesMax / wireBytesMin }
}

/// Builds one reply from the parser's callbacks, which come in the order of the stream: an array before its elements.
private final class ReplyAssembly {
    private struct OpenArray {
        let count: Int
        var values: [RESPValue] = []
    }

    /// Why the reply is refused.
    private(set) var failure: RESPError?
    private var open: [OpenArray] = []
    private var bytes = 0
    private var result: RESPValue?

    /// The complete reply, once.
    func take() -> RESPValue? {
        defer {
            result = nil
            bytes = 0
        }
        return result
    }

    /// Whether the value fits in the reply.
    func add(_ value: RESPValue, bytes count: Int) -> Bool {
        bytes += count + RESPReader.valueBytes
        guard bytes <= RESPReader.replyBytesMax else {
            failure = .tooLong
            return false
        }
        complete(value)
        return true
    }

    func addArray(count: Int) -> Bool {
        guard RESPReader.canHold(count) else {
            failure = .tooLong
            return false
        }
        guard count > 0 else { return add(.array([]), bytes: 0) }
        guard open.count < RESPReader.depthMax else {
            failure = .malformed
            return false
        }
        bytes += RESPReader.valueBytes
        open.append(OpenArray(count: count))
        return true
    }

    /// Puts a value into the innermost array, and closes each array that is complete with it.
    private func complete(_ value: RESPValue) {
        var value = value
        while var array = open.popLast() {
            array.values.append(value)
            guard array.values.count == array.count else {
                open.append(array)
                return
            }
            value = .array(array.values)
        }
        result = value
    }
}

extension ReplyAssembly {
    /// The parser's callbacks. They return anything but `NULL` for success, and own nothing.
    static var functions: redisReplyObjectFunctions {
        unsafe redisReplyObjectFunctions(
            createString: { task, bytes, count in
                unsafe ReplyAssembly.add(to: task) { assembly in
                    let text = unsafe UnsafeRawBufferPointer(start: bytes, count: count)
                    let value: RESPValue =
                        switch unsafe task?.pointee.type {
                        case REDIS_REPLY_STATUS: unsafe .status(String(decoding: text, as: UTF8.self))
                        case REDIS_REPLY_ERROR: unsafe .error(String(decoding: text, as: UTF8.self))
                        default: unsafe .bytes(Array(text))
                        }
                    return assembly.add(value, bytes: count)
                }
            },
            createArray: { task, count in
                unsafe ReplyAssembly.add(to: task) { $0.addArray(count: Int(count)) }
            },
            createInteger: { task, number in
                unsafe ReplyAssembly.add(to: task) { $0.add(.integer(number), bytes: 0) }
            },
            createNil: { task in
                unsafe ReplyAssembly.add(to: task) { $0.add(.null, bytes: 0) }
            },
            freeObject: { _ in }
        )
    }

    private static func add(
        to task: UnsafePointer<redisReadTask>?,
        _ body: (ReplyAssembly) -> Bool
    ) -> UnsafeMutableRawPointer? {
        guard let context = unsafe task?.pointee.privdata else { return nil }
        let assembly = unsafe Unmanaged<ReplyAssembly>.fromOpaque(context).takeUnretainedValue()
        return unsafe body(assembly) ? context : nil
    }
}
