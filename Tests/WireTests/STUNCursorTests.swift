import Testing
import Wire

struct STUNCursorTests {
    private static let id = STUNTransactionID(high: 0xB7E7_A701, low: 0xBC34_D686_FA87_DFAE)

    private func types(_ bytes: [UInt8]) throws -> [STUNAttributeType] {
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        var cursor = message.attributes
        var types: [STUNAttributeType] = []
        while let (type, value) = cursor.next() {
            #expect(value.upperBound <= bytes.count)
            types.append(type)
        }
        return types
    }

    @Test func `the attributes before MESSAGE-INTEGRITY come in their order, repeated ones too`() throws {
        var builder = STUNMessageBuilder(.request, method: .createPermission, transactionID: Self.id)
        builder.append(.data, [1, 2, 3])
        builder.append(.xorPeerAddress, [])
        builder.append(.xorPeerAddress, [1])
        let expected: [STUNAttributeType] = [.data, .xorPeerAddress, .xorPeerAddress]
        #expect(try types(builder.bytes) == expected)
        var marked = builder
        marked.appendFingerprint()
        #expect(try types(marked.bytes) == expected)
        builder.appendMessageIntegrity(key: [1])
        builder.append(.lifetime, 1 as UInt32)
        builder.appendFingerprint()
        #expect(try types(builder.bytes) == expected, "what follows MESSAGE-INTEGRITY is not authenticated")
    }

    @Test func `a message without attributes has none`() throws {
        #expect(try types(STUNMessageBuilder(.request, transactionID: Self.id).bytes).isEmpty)
    }

    @Test(arguments: ["192.0.2.1:32853", "[2001:db8:1234:5678:11:2233:4455:6677]:32853"])
    func `an address in XOR form is written and read back`(text: String) throws {
        let address = try #require(TransportAddress(text))
        var builder = STUNMessageBuilder(.success, method: .allocate, transactionID: Self.id)
        builder.appendXORAddress(.xorRelayedAddress, address)
        let bytes = builder.bytes
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        var cursor = message.attributes
        let value = try #require(cursor.next()?.value)
        #expect(message.xorAddress(at: value) == address)
        #expect(message.xorAddress(at: value.dropLast(1)) == nil)
        #expect(message.xorMappedAddress == nil)
    }
}
