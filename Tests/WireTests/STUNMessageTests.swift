import Base
import TestSupport
import Testing
import Wire

struct STUNMessageTests {
    private static let id = STUNTransactionID(high: 1, low: 2)

    /// Parses a message and checks MESSAGE-INTEGRITY and FINGERPRINT.
    private func isAuthentic(_ bytes: [UInt8], key: [UInt8]) -> Bool {
        guard let message = try? STUNMessageView(unsafe bytes.span.bytes) else { return false }
        return message.hasValidFingerprint() && message.hasValidIntegrity(key: key)
    }

    private func hasIntegrity(_ bytes: [UInt8], key: [UInt8]) -> Bool {
        guard let message = try? STUNMessageView(unsafe bytes.span.bytes) else { return false }
        return message.hasValidIntegrity(key: key)
    }

    /// Calls every accessor, to detect traps.
    private func readAll(_ bytes: [UInt8]) {
        _ = STUNMessageView.isSTUN(unsafe bytes.span.bytes)
        guard let message = try? STUNMessageView(unsafe bytes.span.bytes) else { return }
        _ = (message.username, message.realm, message.nonce, message.software, message.localUsernameFragment())
        _ = (message.priority, message.useCandidate, message.iceControlled, message.iceControlling)
        _ = (message.errorCode, message.xorMappedAddress, message.unknownAttributes)
        _ = (message.hasValidFingerprint(), message.hasValidIntegrity(key: STUNVector.password))
    }

    private func error(_ bytes: [UInt8]) -> STUNParseError? {
        do throws(STUNParseError) {
            _ = try STUNMessageView(unsafe bytes.span.bytes)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: STUNVector.withFingerprint)
    func `a message with any one byte changed is never authentic`(vector: STUNVector) {
        #expect(isAuthentic(vector.bytes, key: vector.key))
        for offset in vector.bytes.indices {
            for value in UInt8.min...UInt8.max where value != vector.bytes[offset] {
                var changed = vector.bytes
                changed[offset] = value
                if isAuthentic(changed, key: vector.key) {
                    Issue.record("byte \(offset) as \(value) was accepted")
                }
                guard (value ^ vector.bytes[offset]).nonzeroBitCount == 1 else { continue }
                readAll(changed)
                if offset < vector.bytes.count - 8, hasIntegrity(changed, key: vector.key) {
                    Issue.record("byte \(offset) as \(value) is not covered by the signature")
                }
            }
        }
    }

    @Test(arguments: STUNVector.all)
    func `a truncated message and one with trailing bytes are refused`(vector: STUNVector) {
        for count in vector.bytes.indices {
            let expected: STUNParseError = .truncated(
                needed: count < 20 ? 20 : vector.bytes.count,
                available: count
            )
            #expect(error(Array(vector.bytes.prefix(count))) == expected)
        }
        for extra in 1...8 {
            #expect(error(vector.bytes + [UInt8](repeating: 0, count: extra)) == .length)
        }
    }

    @Test func `a message truncated at any attribute with a corrected length is never authentic`() {
        for count in stride(from: 20, to: STUNVector.request.bytes.count, by: 4) {
            var cut = Array(STUNVector.request.bytes.prefix(count))
            cut.store(bigEndian: UInt16(count - 20), at: 2)
            readAll(cut)
            #expect(!isAuthentic(cut, key: STUNVector.password))
        }
    }

    @Test func `random bytes after a valid header never trap`() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...40, using: &generator) * 4
            var bytes = STUNMessageBuilder(.request, transactionID: Self.id).bytes
            bytes.store(bigEndian: UInt16(count), at: 2)
            for _ in 0..<count / 4 {
                let types: [UInt16] = [1, 6, 8, 9, 0x14, 0x20, 0x24, 0x25, 0x8028, 0x8029, 0x802A, 0x7FFF]
                bytes.append(
                    bigEndian: Bool.random(using: &generator) ? types[Int.random(in: 0..<12, using: &generator)] : 0
                )
                bytes.append(bigEndian: UInt16.random(in: 0...24, using: &generator))
            }
            readAll(bytes)
        }
    }

    @Test(arguments: STUNMessageClass.allCases, [0x000, 0x001, 0x00F, 0x010, 0x080, 0x0A5, 0x0FF] as [UInt16])
    func `class and method are written and read back`(messageClass: STUNMessageClass, raw: UInt16) throws {
        let method = try #require(STUNMethod(rawValue: raw))
        let bytes = STUNMessageBuilder(messageClass, method: method, transactionID: Self.id).bytes
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        #expect(message.messageClass == messageClass)
        #expect(message.method == method)
        #expect(message.transactionID == Self.id)
    }

    @Test(arguments: [
        ("a DTLS record", [UInt8](repeating: 22, count: 40)),
        ("an RTP packet", [0x80] + [UInt8](repeating: 0, count: 39)),
        ("no magic cookie", [0, 1, 0, 0] + [UInt8](repeating: 0, count: 16)),
    ])
    func `another protocol on the same port is not STUN`(name: String, bytes: [UInt8]) {
        let isSTUN = STUNMessageView.isSTUN(unsafe bytes.span.bytes)
        #expect(!isSTUN)
        #expect(error(bytes) == .notSTUN)
    }

    @Test(arguments: [
        (STUNAttributeType.priority, 3), (.priority, 8), (.useCandidate, 4), (.iceControlled, 4), (.iceControlling, 12),
        (.messageIntegrity, 16), (.fingerprint, 8), (.errorCode, 0), (.errorCode, 4), (.xorMappedAddress, 0),
        (.xorMappedAddress, 8), (.username, 514), (.realm, 764), (.software, 764),
    ])
    func `a known attribute of a wrong length or form is refused`(type: STUNAttributeType, count: Int) {
        var builder = STUNMessageBuilder(.request, transactionID: Self.id)
        builder.append(type, [UInt8](repeating: 0, count: count))
        #expect(error(builder.bytes) == .attribute(type))
    }

    @Test func `an attribute that exceeds the message is refused`() {
        var builder = STUNMessageBuilder(.request, transactionID: Self.id)
        builder.append(.username, "abcd:efgh")
        var bytes = builder.bytes
        bytes.store(bigEndian: 0xFFFF, at: 22)
        #expect(error(bytes) == .attribute(.username))
    }

    @Test func `an attribute after FINGERPRINT is refused`() {
        var builder = STUNMessageBuilder(.request, transactionID: Self.id)
        builder.appendFingerprint()
        builder.append(.useCandidate)
        #expect(error(builder.bytes) == .attributeAfterFingerprint)
    }

    @Test func `more attributes than the maximum are refused`() {
        var builder = STUNMessageBuilder(.request, transactionID: Self.id)
        for _ in 0..<STUNMessageView.attributesMax { builder.append(.useCandidate) }
        #expect(error(builder.bytes) == nil)
        builder.append(.useCandidate)
        #expect(error(builder.bytes) == .tooManyAttributes)
    }

    @Test func `attributes after MESSAGE-INTEGRITY are ignored`() throws {
        var builder = STUNMessageBuilder(.request, transactionID: Self.id)
        builder.appendMessageIntegrity(key: STUNVector.password)
        builder.append(.useCandidate)
        builder.append(STUNAttributeType(rawValue: 0x7777))
        builder.appendFingerprint()
        let bytes = builder.bytes
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        let isValid = message.hasValidIntegrity(key: STUNVector.password)
        #expect(isValid)
        #expect(message.useCandidate == false)
        #expect(message.unknownAttributeCount == 0)
    }

    @Test func `the first of duplicate attributes counts`() throws {
        var builder = STUNMessageBuilder(.request, transactionID: Self.id)
        builder.append(.username, "first:one")
        builder.append(.username, "second:one")
        let bytes = builder.bytes
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        #expect(message.localUsernameFragment() == "first")
    }

    @Test func `unknown comprehension-required attributes are counted, and up to eight are listed`() throws {
        var builder = STUNMessageBuilder(.request, transactionID: Self.id)
        builder.append(STUNAttributeType(rawValue: 0xC057), [1, 2, 3, 4])
        for type in 0x7000..<0x700A as Range<UInt16> { builder.append(STUNAttributeType(rawValue: type), [1]) }
        let bytes = builder.bytes
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        #expect(message.unknownAttributeCount == 10)
        #expect(message.unknownAttributes.map(\.rawValue) == Array(0x7000..<0x7008))
    }

    @Test(arguments: [300, 420, 487, 699])
    func `an error code is written and read back`(code: Int) throws {
        var builder = STUNMessageBuilder(.error, transactionID: Self.id)
        builder.appendErrorCode(code, reason: "Because")
        let bytes = builder.bytes
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        #expect(message.errorCode == code)
        #expect(Array(bytes[28..<35]) == Array("Because".utf8))
    }

    @Test func `a username that is not UTF-8 has no text but can be compared`() throws {
        var builder = STUNMessageBuilder(.request, transactionID: Self.id)
        builder.append(.username, [0xFF, 0x3A, 0x41])
        let bytes = builder.bytes
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        #expect(message.username == nil)
        #expect(message.localUsernameFragment() == nil)
        let matches = message.hasUsername([0xFF, 0x3A, 0x41])
        #expect(matches)
    }
}
