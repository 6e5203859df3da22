import Access
import ChannelTypes
import JSON
import MediaTypes
import Web
import Wire

/// The server's messages as JSON text, with the members and types that the SDKs expect.
enum SoraServerMessage {
    static func offer(
        _ settings: SoraSettings,
        reservation: SoraStateMachine.Reservation,
        sdp: String,
        mids: (audio: MID?, video: MID?),
        configuration: SoraConfiguration
    ) -> String {
        var message = JSONObjectWriter()
        message.add("type", "offer")
        message.add("version", configuration.node.version)
        message.add("channel_id", settings.channel.value)
        message.add("session_id", reservation.session.value)
        message.add("client_id", reservation.resumedClientID ?? settings.clientID)
        message.add("bundle_id", settings.bundleID)
        message.add("connection_id", reservation.participant.value)
        message.add("simulcast", settings.isSimulcast)
        message.add("simulcast_multicodec", false)
        message.add("spotlight", settings.spotlight != nil)
        message.add("data_channel_signaling", settings.data?.carriesSignaling ?? false)
        message.add("ignore_disconnect_websocket", settings.data?.ignoresSocketLoss ?? false)
        message.add("data_channels", ifPresent: settings.data?.json)
        if let methods = settings.data?.methods, !methods.isEmpty {
            message.add("rpc_methods", json: jsonArray(methods.map { jsonString($0.name) }))
        }
        message.add("audio", settings.audio.isEnabled)
        if settings.audio.isEnabled {
            message.add("audio_codec_type", ifPresent: settings.audio.codec.map(jsonString))
            message.add("audio_bit_rate", ifPresent: settings.audio.bitRate.map { String($0) })
        }
        message.add("video", settings.video.isEnabled)
        if settings.video.isEnabled {
            message.add("video_codec_type", ifPresent: settings.video.codec.map(jsonString))
            message.add("video_bit_rate", ifPresent: settings.video.bitRate.map { String($0) })
        }
        message.add("config", ifPresent: config(settings, configuration.turn, reservation.turn))
        var mid = JSONObjectWriter()
        mid.add("audio", ifPresent: mids.audio.map { jsonString($0.value) })
        mid.add("video", ifPresent: mids.video.map { jsonString($0.value) })
        if mids.audio != nil || mids.video != nil { message.add("mid", json: mid.text) }
        if !settings.encodings.isEmpty { message.add("encodings", json: jsonArray(settings.encodings)) }
        message.add("metadata", ifPresent: settings.grants.metadata?.text)
        message.add("sdp", sdp)
        return message.text
    }

    /// The SDKs differ. iOS accepts only a relay policy or no `config`; the others need `iceServers`, with username and
    /// credential in each entry.
    private static func config(
        _ settings: SoraSettings,
        _ external: SoraConfiguration.TURN?,
        _ embedded: TURNAccess?
    ) -> String? {
        let servers = [embedded.map { SoraConfiguration.TURN($0) }, external]
            .compactMap { $0?.permitted(by: settings.grants) }.map(server)
        if settings.needsTURN, servers.isEmpty { return nil }
        var config = JSONObjectWriter()
        config.add("iceServers", json: jsonArray(servers))
        config.add("iceTransportPolicy", settings.needsTURN ? "relay" : "all")
        return config.text
    }

    private static func server(_ turn: SoraConfiguration.TURN) -> String {
        var server = JSONObjectWriter()
        server.add("urls", json: jsonArray(turn.urls.map(jsonString)))
        server.add("username", turn.username)
        server.add("credential", turn.credential)
        return server.text
    }

    /// Some clients connect to the other node only after the WebSocket has closed.
    static func redirect(to address: NodeAddress) -> String {
        var message = JSONObjectWriter()
        message.add("type", "redirect")
        message.add("location", "\(address.webSocketURL)/signaling")
        return message.text
    }

    static func reoffer(sdp: String) -> String {
        var message = JSONObjectWriter()
        message.add("type", "re-offer")
        message.add("sdp", sdp)
        return message.text
    }

    /// - Parameter ignoresSocketLoss: Whether the client may close its WebSocket.
    static func switched(ignoresSocketLoss: Bool) -> String {
        #"{"type":"switched","ignore_disconnect_websocket":\#(ignoresSocketLoss)}"#
    }

    /// The end of a connection over its data channels.
    static func close(_ close: WebSocketClose) -> String {
        var message = JSONObjectWriter()
        message.add("type", "close")
        message.add("code", Int(close.code))
        message.add("reason", close.reason)
        return message.text
    }

    static let statisticsRequest = #"{"type":"req-stats"}"#

    static func ping(wantsStatistics: Bool) -> String {
        wantsStatistics ? #"{"type":"ping","stats":true}"# : #"{"type":"ping"}"#
    }

    /// - Parameter json: The text of a JSON value.
    static func push(_ json: String) -> String {
        var message = JSONObjectWriter()
        message.add("type", "push")
        message.add("data", json: json)
        return message.text
    }
}
