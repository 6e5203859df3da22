import ChannelTypes
import JSON

// The answers to the requests of clients.

extension SoraServerMessage {
    /// - Parameters:
    ///   - id: the request's, as JSON text.
    ///   - result: the text of a JSON object, or why the request is refused.
    static func response(to id: String, _ result: Result<String, RequestFailure>) -> String {
        var message = JSONObjectWriter()
        message.add("type", "response")
        message.add("id", json: id)
        switch result {
        case .success(let json): message.add("result", json: json)
        case .failure(let failure):
            var error = JSONObjectWriter()
            error.add("code", failure.reason.code)
            error.add("reason", failure.reason.rawValue)
            error.add("message", failure.message)
            message.add("error", json: error.text)
        }
        return message.text
    }

    /// - Parameters:
    ///   - id: the request's, as JSON text.
    ///   - result: the text of a JSON value, or why the request is refused.
    static func rpcResponse(to id: String, _ result: Result<String, RequestFailure>) -> String {
        var message = JSONObjectWriter()
        message.add("jsonrpc", "2.0")
        message.add("id", json: id)
        switch result {
        case .success(let json): message.add("result", json: json)
        case .failure(let failure):
            var error = JSONObjectWriter()
            error.add("code", failure.reason.rpcCode)
            error.add("message", failure.message)
            var data = JSONObjectWriter()
            data.add("reason", failure.reason.rawValue)
            data.add("code", failure.reason.code)
            error.add("data", json: data.text)
            message.add("error", json: error.text)
        }
        return message.text
    }

    /// What a change of metadata is pushed as: the form of Sora's metadata API.
    static func metadataPush(_ change: MetadataChange, of connection: ParticipantID) -> String {
        var data = JSONObjectWriter()
        data.add("type", "signaling_notify_metadata_ext")
        data.add("connection_id", connection.value)
        switch change {
        case .whole(let metadata):
            data.add("action", "PutMetadata")
            data.add("metadata", json: metadata.text)
        case .item(let key, let value):
            data.add("action", "PutMetadataItem")
            data.add("key", key)
            data.add("value", json: value.text)
        }
        return data.text
    }
}

extension RequestFailure.Reason {
    /// The code of JSON-RPC 2.0 §5.1.
    fileprivate var rpcCode: Int {
        switch self {
        case .notJSON: -32_700
        case .requestInvalid: -32_600
        case .methodUnknown: -32_601
        case .parametersInvalid: -32_602
        case .internalError: -32_603
        default: -32_000
        }
    }
}
