import Base
import Testing
import Wire

struct STUNVectorTests {
    @Test(arguments: STUNVector.all)
    func `each sample of RFC 5769 is authentic with its key and no other`(vector: STUNVector) throws {
        let message = try STUNMessageView(unsafe vector.bytes.span.bytes)
        let accepted = message.hasValidIntegrity(key: vector.key)
        let acceptedWithWrongKey = message.hasValidIntegrity(key: Array(vector.key.dropLast()))
        let acceptedWithNoKey = message.hasValidIntegrity(key: [])
        let fingerprint = message.hasValidFingerprint()
        let hasFingerprint = message.hasFingerprint
        #expect(accepted)
        #expect(!acceptedWithWrongKey)
        #expect(!acceptedWithNoKey)
        #expect(fingerprint == hasFingerprint)
        #expect(hasFingerprint == (vector.name != STUNVector.longTerm.name))
    }

    @Test func `the attributes of the sample request are read`() throws {
        let bytes = STUNVector.request.bytes
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        #expect(message.messageClass == .request)
        #expect(message.method == .binding)
        #expect(message.transactionID == STUNTransactionID(high: 0xB7E7_A701, low: 0xBC34_D686_FA87_DFAE))
        #expect(message.software == "STUN test client")
        #expect(message.priority == 0x6E00_01FF)
        #expect(message.iceControlled == 0x932F_F9B1_5126_3B36)
        #expect(message.iceControlling == nil)
        #expect(message.useCandidate == false)
        #expect(message.username == "evtj:h6vY")
        #expect(message.localUsernameFragment() == "evtj")
        #expect(message.unknownAttributeCount == 0)
    }

    @Test(arguments: [
        (STUNVector.responseV4, "192.0.2.1:32853"),
        (STUNVector.responseV6, "[2001:db8:1234:5678:11:2233:4455:6677]:32853"),
    ])
    func `the sample responses read as published`(vector: STUNVector, address: String) throws {
        let message = try STUNMessageView(unsafe vector.bytes.span.bytes)
        #expect(message.messageClass == .success)
        #expect(message.software == "test vector")
        #expect(message.xorMappedAddress == TransportAddress(address))
    }

    @Test func `the attributes of the sample with long-term credentials are read`() throws {
        let bytes = STUNVector.longTerm.bytes
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        #expect(message.username == "\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}")
        #expect(message.realm == "example.org")
        #expect(message.nonce == "f//499k954d6OL34oL9FSTvy64sA")
        #expect(message.localUsernameFragment() == nil)
    }

    @Test func `the sample request is rebuilt byte for byte`() {
        let id = STUNTransactionID(high: 0xB7E7_A701, low: 0xBC34_D686_FA87_DFAE)
        var builder = STUNMessageBuilder(.request, transactionID: id, padding: 0x20)
        builder.append(.software, "STUN test client")
        builder.append(.priority, 0x6E00_01FF as UInt32)
        builder.append(.iceControlled, 0x932F_F9B1_5126_3B36 as UInt64)
        builder.append(.username, "evtj:h6vY")
        builder.appendMessageIntegrity(key: STUNVector.password)
        builder.appendFingerprint()
        #expect(builder.bytes == STUNVector.request.bytes)
    }

    @Test(arguments: [
        (STUNVector.responseV4, "192.0.2.1:32853"),
        (STUNVector.responseV6, "[2001:db8:1234:5678:11:2233:4455:6677]:32853"),
    ])
    func `the sample responses are rebuilt byte for byte`(vector: STUNVector, address: String) throws {
        let id = STUNTransactionID(high: 0xB7E7_A701, low: 0xBC34_D686_FA87_DFAE)
        var builder = STUNMessageBuilder(.success, transactionID: id, padding: 0x20)
        builder.append(.software, "test vector")
        builder.appendXORMappedAddress(try #require(TransportAddress(address)))
        builder.appendMessageIntegrity(key: STUNVector.password)
        builder.appendFingerprint()
        #expect(builder.bytes == vector.bytes)
    }

    @Test func `the sample with long-term credentials is rebuilt byte for byte`() {
        let id = STUNTransactionID(high: 0x78AD_3433, low: 0xC6AD_72C0_29DA_412E)
        var builder = STUNMessageBuilder(.request, transactionID: id)
        builder.append(.username, "\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}")
        builder.append(.nonce, "f//499k954d6OL34oL9FSTvy64sA")
        builder.append(.realm, "example.org")
        builder.appendMessageIntegrity(key: STUNVector.longTerm.key)
        #expect(builder.bytes == STUNVector.longTerm.bytes)
    }

    /// RFC 5769 §2.4, with the password after SASLprep.
    @Test func `the key of the published long-term request comes out`() throws {
        let user = "\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}"
        let key = MD5.digest(of: Array("\(user):example.org:TheMatrIX".utf8))
        let bytes = STUNVector.longTerm.bytes
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        #expect(message.username == user)
        let isValid = message.hasValidIntegrity(key: key)
        #expect(isValid)
    }
}
