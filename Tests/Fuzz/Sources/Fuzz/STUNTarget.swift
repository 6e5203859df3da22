import Wire

/// A STUN message: reads all attributes, writes them and reads them again.
func fuzzSTUN(_ bytes: RawSpan) {
    let isSTUN = STUNMessageView.isSTUN(bytes)
    let message: STUNMessageView
    do { message = try STUNMessageView(bytes) } catch { return }
    require(isSTUN, "a valid message is demultiplexed as STUN")
    let key = Array("a password of some length".utf8)
    _ = message.hasValidIntegrity(key: key)
    _ = message.hasValidFingerprint()
    _ = message.hasUsername(key)
    require(message.unknownAttributes.count <= message.unknownAttributeCount, "no more are listed than there are")
    if let range = message.usernameRange { require(range.upperBound <= bytes.byteCount, "USERNAME is inside") }
    if let code = message.errorCode { require((300...699).contains(code), "an error code is 300…699") }
    if let fragment = message.localUsernameFragment(), let username = message.username {
        require(username.utf8.starts(with: fragment.utf8), "the username starts with the fragment")
    }
    let rebuilt = rebuild(message, key: key)
    withSpan(rebuilt) { compare(message, with: $0, key: key) }
}

private func rebuild(_ message: borrowing STUNMessageView, key: [UInt8]) -> [UInt8] {
    var builder = STUNMessageBuilder(
        message.messageClass,
        method: message.method,
        transactionID: message.transactionID
    )
    if let username = message.username { builder.append(.username, username) }
    if let realm = message.realm { builder.append(.realm, realm) }
    if let nonce = message.nonce { builder.append(.nonce, nonce) }
    if let software = message.software { builder.append(.software, software) }
    if let priority = message.priority { builder.append(.priority, priority) }
    if message.useCandidate { builder.append(.useCandidate) }
    if let tieBreaker = message.iceControlling { builder.append(.iceControlling, tieBreaker) }
    if let tieBreaker = message.iceControlled { builder.append(.iceControlled, tieBreaker) }
    if let address = message.xorMappedAddress { builder.appendXORMappedAddress(address) }
    if let code = message.errorCode { builder.appendErrorCode(code, reason: message.software ?? "") }
    builder.appendMessageIntegrity(key: key)
    builder.appendFingerprint()
    return builder.bytes
}

private func compare(_ message: borrowing STUNMessageView, with bytes: RawSpan, key: [UInt8]) {
    let again: STUNMessageView
    do { again = try STUNMessageView(bytes) } catch { fatalError("broken: what was written reads: \(error)") }
    require(again.messageClass == message.messageClass && again.method == message.method, "class and method stay")
    require(again.transactionID == message.transactionID, "the transaction stays")
    require(again.username == message.username && again.realm == message.realm, "texts stay")
    require(again.nonce == message.nonce && again.software == message.software, "texts stay")
    require(again.priority == message.priority && again.useCandidate == message.useCandidate, "candidate stays")
    require(again.iceControlling == message.iceControlling, "the role stays")
    require(again.iceControlled == message.iceControlled, "the role stays")
    require(again.xorMappedAddress == message.xorMappedAddress, "the address stays")
    require(again.errorCode == message.errorCode, "the error stays")
    require(again.hasValidIntegrity(key: key) && again.hasValidFingerprint(), "a signed message is valid")
    require(!again.hasValidIntegrity(key: key + [0x21]), "another key is not valid")
}

func seedsSTUN() -> [(name: String, bytes: [UInt8])] {
    let id = STUNTransactionID(high: 0x0102_0304, low: 0x0506_0708_090A_0B0C)
    let key = Array("a password of some length".utf8)
    var request = STUNMessageBuilder(.request, transactionID: id)
    request.append(.username, "serv:clnt")
    request.append(.priority, 0x6E7F_1EFF as UInt32)
    request.append(.iceControlling, 0x1122_3344_5566_7788 as UInt64)
    request.append(.useCandidate)
    request.append(.software, "seed")
    request.appendMessageIntegrity(key: key)
    request.appendFingerprint()
    var success = STUNMessageBuilder(.success, transactionID: id, padding: 0x20)
    success.appendXORMappedAddress(TransportAddress(ip: IPAddress(v4: 0xC000_0201), port: 32_853))
    success.appendMessageIntegrity(key: key)
    success.appendFingerprint()
    var wide = STUNMessageBuilder(.success, transactionID: id)
    wide.appendXORMappedAddress(TransportAddress(ip: IPAddress(high: 0x2001_0DB8 << 32, low: 7), port: 9))
    wide.append(.iceControlled, 5 as UInt64)
    var refusal = STUNMessageBuilder(.error, transactionID: id)
    refusal.appendErrorCode(420, reason: "Unknown Attribute")
    refusal.appendUnknownAttributes([STUNAttributeType(rawValue: 0x7FFF)])
    refusal.append(.realm, "realm")
    refusal.append(.nonce, "nonce")
    refusal.append(STUNAttributeType(rawValue: 0x7FFF), [1, 2, 3])
    let indication = STUNMessageBuilder(.indication, transactionID: id)
    return [
        ("request", request.bytes), ("success", success.bytes), ("success-v6", wide.bytes), ("error", refusal.bytes),
        ("indication", indication.bytes),
    ]
}
