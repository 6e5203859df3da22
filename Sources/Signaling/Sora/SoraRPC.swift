import Access
import ChannelTypes
import JSON

/// Requests of a client over the data channel `rpc`: JSON-RPC 2.0, with methods of Sora's HTTP API and of channels.
enum SoraRPC {
    /// A method under its name in messages, in the offer and in the grant `rpc_methods`.
    enum Method: Hashable, Sendable, CaseIterable {
        case sora(SoraMethod)
        case channel(ChannelRequest.Name)

        static var allCases: [Self] { SoraMethod.allCases.map(Self.sora) + ofChannels }
        /// What a client may call of itself, as over its WebSocket.
        static var ofChannels: [Self] { ChannelRequest.Name.allCases.map(Self.channel) }

        var name: String {
            switch self {
            case .sora(let method): method.rawValue
            case .channel(let name): ChannelRequest.Name.rpcPrefix + name.rawValue
            }
        }

        fileprivate var parameters: Set<String> {
            switch self {
            case .sora(let method): method.parameters
            case .channel(let name): name.parameters
            }
        }
    }

    /// A method of Sora.
    enum SoraMethod: String, Hashable, Sendable, CaseIterable {
        case requestSimulcastRID = "2025.2.0/RequestSimulcastRid"
        case requestSpotlightRID = "2025.2.0/RequestSpotlightRid"
        case resetSpotlightRID = "2025.2.0/ResetSpotlightRid"
        case putMetadata = "2025.2.0/PutSignalingNotifyMetadata"
        case putMetadataItem = "2025.2.0/PutSignalingNotifyMetadataItem"

        /// The parameters of the method, without those that name the caller.
        fileprivate var parameters: Set<String> {
            switch self {
            case .requestSimulcastRID: ["rid", "sender_connection_id"]
            case .requestSpotlightRID: ["send_connection_id", "spotlight_focus_rid", "spotlight_unfocus_rid"]
            case .resetSpotlightRID: ["send_connection_id"]
            case .putMetadata: ["metadata", "push"]
            case .putMetadataItem: ["key", "value", "push"]
            }
        }
    }

    /// The client as its requests may name it.
    struct Caller: Sendable {
        let channel: ChannelName
        let connection: ParticipantID

        /// The parameters of the HTTP API that name the caller, and their only permitted value.
        fileprivate var parameters: [String: String] {
            [
                "channel_id": channel.value, "connection_id": connection.value,
                "receiver_connection_id": connection.value, "recv_connection_id": connection.value,
            ]
        }
    }

    /// The longest request, in bytes. Metadata makes the longest ones.
    static let bytesMax = 16 * 1024
    /// The longest name of an item of the metadata, in bytes.
    private static let keyBytesMax = 255

    /// Parses a request. A notification, which has no `id`, is performed and not answered.
    ///
    /// - Parameters:
    ///   - bytes: the message, decompressed.
    ///   - permitted: the methods of the client's grant.
    static func request(_ bytes: [UInt8], permitted: [Method], from caller: Caller) -> ChannelRequest {
        func refused(_ failure: RequestFailure) -> ChannelRequest {
            ChannelRequest(reply: .rpc(id: "null"), method: .failure(failure))
        }
        guard bytes.count <= bytesMax else {
            return refused(RequestFailure(.requestInvalid, "A request may have at most \(bytesMax) bytes."))
        }
        guard let value = try? JSONValue(parsing: bytes) else {
            return refused(RequestFailure(.notJSON, "The request is not JSON."))
        }
        guard let members = value.object, members["jsonrpc"] == "2.0" else {
            let message = "A request has to be one object with \"jsonrpc\": \"2.0\"; send no batches."
            return refused(RequestFailure(.requestInvalid, message))
        }
        let fields = JSONFields(members)
        var reply = ChannelRequest.Reply.none
        if members["id"] != nil {
            guard let id = ChannelRequest.id(fields) else {
                return refused(RequestFailure(.requestInvalid, ChannelRequest.idRule))
            }
            reply = .rpc(id: id)
        }
        return ChannelRequest(
            reply: reply,
            method: Result { () throws(RequestFailure) in try method(fields, permitted, caller) }
        )
    }

    private static func method(
        _ fields: JSONFields,
        _ permitted: [Method],
        _ caller: Caller
    ) throws(RequestFailure) -> ChannelRequest.Method {
        guard let name = fields.value("method")?.string else {
            throw RequestFailure(.requestInvalid, "\"method\" has to be a string.")
        }
        guard let method = permitted.first(where: { $0.name == name }) else {
            throw RequestFailure(
                .methodUnknown,
                "The method does not exist, or the client may not call it; \"rpc_methods\" of the offer lists those it may."
            )
        }
        do throws(JSONShapeError) {
            let parameters = JSONFields(try fields.object("params") ?? [:])
            try check(parameters, of: method, caller)
            switch method {
            case .sora(let method): return try ChannelRequest.Method(method, parameters, caller)
            case .channel(let name): return try ChannelRequest.Method(name, parameters, caller.connection)
            }
        } catch {
            throw RequestFailure(.parametersInvalid, "The parameters are refused: \(error.message)")
        }
    }

    /// Refuses parameters that the method does not have, as Sora does, and those that name another client.
    private static func check(
        _ parameters: JSONFields,
        of method: Method,
        _ caller: Caller
    ) throws(JSONShapeError) {
        let own = caller.parameters
        for (name, value) in parameters.members where !method.parameters.contains(name) {
            guard let expected = own[name] else {
                throw JSONShapeError("The method has no parameter \"\(name.printable)\".")
            }
            guard value.string == expected else {
                throw JSONShapeError("\"\(name)\" is another than the client's own; leave it out.")
            }
        }
    }

    fileprivate static func sender(_ parameters: JSONFields, _ name: String) throws(JSONShapeError) -> ParticipantID? {
        guard let text = try parameters.string(name) else { return nil }
        guard let id = ParticipantID(text) else { throw JSONShapeError("\"\(name)\" is no connection ID.") }
        return id
    }

    fileprivate static func rid(_ parameters: JSONFields, _ name: String) throws(JSONShapeError) -> RequestedRID {
        guard let rid: RequestedRID = try parameters.choice(name) else {
            throw JSONShapeError("\"\(name)\" is missing.")
        }
        return rid
    }

    fileprivate static func key(_ parameters: JSONFields) throws(JSONShapeError) -> String {
        let key = try parameters.requiredString("key", bytesMax: keyBytesMax)
        guard !key.isEmpty, !key.unicodeScalars.contains(where: \.isControl) else {
            throw JSONShapeError("\"key\" is empty, or has a control character.")
        }
        return key
    }
}

extension ChannelRequest.Method {
    fileprivate init(
        _ method: SoraRPC.SoraMethod,
        _ parameters: JSONFields,
        _ caller: SoraRPC.Caller
    ) throws(JSONShapeError) {
        let own = caller.connection
        switch method {
        case .requestSimulcastRID:
            let rid = try SoraRPC.rid(parameters, "rid")
            let sender = try SoraRPC.sender(parameters, "sender_connection_id")
            var result = caller.result("receiver_connection_id")
            result.add("rid", rid.rawValue)
            result.add("sender_connection_id", ifPresent: sender.map { jsonString($0.value) })
            self = .perform(.requestLayer(rid.layer, receiver: own, sender: sender), result: result.text)
        case .requestSpotlightRID:
            let focus = try SoraRPC.rid(parameters, "spotlight_focus_rid")
            let unfocus = try SoraRPC.rid(parameters, "spotlight_unfocus_rid")
            let layers = SpotlightLayers(focus: focus.layer, unfocus: unfocus.layer)
            let sender = try SoraRPC.sender(parameters, "send_connection_id")
            var result = caller.result("recv_connection_id")
            result.add("send_connection_id", ifPresent: sender.map { jsonString($0.value) })
            result.add("spotlight_focus_rid", focus.rawValue)
            result.add("spotlight_unfocus_rid", unfocus.rawValue)
            self = .perform(.requestSpotlightLayers(layers, receiver: own, sender: sender), result: result.text)
        case .resetSpotlightRID:
            let sender = try SoraRPC.sender(parameters, "send_connection_id")
            var result = caller.result("recv_connection_id")
            result.add("send_connection_id", ifPresent: sender.map { jsonString($0.value) })
            self = .perform(.requestSpotlightLayers(nil, receiver: own, sender: sender), result: result.text)
        case .putMetadata:
            guard let metadata = parameters.value("metadata") else { throw JSONShapeError("\"metadata\" is missing.") }
            self = .putMetadata(.whole(metadata), pushes: try parameters.bool("push") ?? false)
        case .putMetadataItem:
            guard let value = parameters.value("value") else { throw JSONShapeError("\"value\" is missing.") }
            let key = try SoraRPC.key(parameters)
            self = .putMetadata(.item(key, value), pushes: try parameters.bool("push") ?? false)
        }
    }
}

extension SoraRPC.Caller {
    /// The result of a method that changes what the client receives: its parameters, with those that name the client.
    fileprivate func result(_ name: StaticString) -> JSONObjectWriter {
        var result = JSONObjectWriter()
        result.add("channel_id", channel.value)
        result.add(name, connection.value)
        return result
    }
}
