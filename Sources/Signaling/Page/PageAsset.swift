import HTTPTypes
import Hummingbird
import NIOCore

/// A file of the built-in page, or of the browser module on which it is built. The raw value is its name in URLs.
enum PageAsset: String, Hashable, Sendable, CaseIterable {
    case page = "index.html"
    case style = "page.css"
    case script = "page.js"
    case bar = "bar.js"
    case callView = "call-view.js"
    case channelView = "channel-view.js"
    case chat = "chat.js"
    case form = "form.js"
    case numbers = "numbers.js"
    case pattern = "pattern.js"
    case speaker = "speaker.js"
    case stage = "stage.js"
    case tiles = "tiles.js"
    case ui = "ui.js"
    case words = "words.js"
    /// A worker.
    case clock = "clock.js"

    /// What applications import. The module's other files are imported by it, relative to its own address.
    case module = "nagare.js"
    case moduleTypes = "nagare.d.ts"
    case moduleChannel = "nagare-channel.js"
    case moduleDevices = "nagare-devices.js"
    case moduleErrors = "nagare-errors.js"
    case moduleLink = "nagare-link.js"
    case moduleMessages = "nagare-messages.js"
    case moduleOptions = "nagare-options.js"
    case moduleReconnect = "nagare-reconnect.js"
    case moduleScreen = "nagare-screen.js"
    case moduleTracks = "nagare-tracks.js"
    case moduleUsers = "nagare-users.js"
    /// The part of the browser module for calls of two.
    case call = "nagare-call.js"
    case callTypes = "nagare-call.d.ts"

    /// `nil` for an unknown file. The empty name is the page itself.
    init?(name: String) { self.init(rawValue: name.isEmpty ? Self.page.rawValue : name) }

    private var bytes: [UInt8] {
        switch self {
        case .page: PackageResources.index_html
        case .style: PackageResources.page_css
        case .script: PackageResources.page_js
        case .bar: PackageResources.bar_js
        case .callView: PackageResources.call_view_js
        case .channelView: PackageResources.channel_view_js
        case .chat: PackageResources.chat_js
        case .form: PackageResources.form_js
        case .numbers: PackageResources.numbers_js
        case .pattern: PackageResources.pattern_js
        case .speaker: PackageResources.speaker_js
        case .stage: PackageResources.stage_js
        case .tiles: PackageResources.tiles_js
        case .ui: PackageResources.ui_js
        case .words: PackageResources.words_js
        case .clock: PackageResources.clock_js
        case .module: PackageResources.nagare_js
        case .moduleTypes: PackageResources.nagare_d_ts
        case .moduleChannel: PackageResources.nagare_channel_js
        case .moduleDevices: PackageResources.nagare_devices_js
        case .moduleErrors: PackageResources.nagare_errors_js
        case .moduleLink: PackageResources.nagare_link_js
        case .moduleMessages: PackageResources.nagare_messages_js
        case .moduleOptions: PackageResources.nagare_options_js
        case .moduleReconnect: PackageResources.nagare_reconnect_js
        case .moduleScreen: PackageResources.nagare_screen_js
        case .moduleTracks: PackageResources.nagare_tracks_js
        case .moduleUsers: PackageResources.nagare_users_js
        case .call: PackageResources.nagare_call_js
        case .callTypes: PackageResources.nagare_call_d_ts
        }
    }

    /// One shared buffer for all connections, so that slow clients hold no copies.
    private static let buffers = Dictionary(uniqueKeysWithValues: allCases.map { ($0, ByteBuffer(bytes: $0.bytes)) })

    private var contentType: String {
        switch self {
        case .page: "text/html; charset=utf-8"
        case .style: "text/css; charset=utf-8"
        case .moduleTypes, .callTypes: "text/plain; charset=utf-8"
        default: "text/javascript; charset=utf-8"
        }
    }

    /// Restricts the page to its own files and this server, and forbids frames. In a cluster it may connect to the other
    /// nodes, which serve their channels.
    private static func policy(_ nodes: [NodeAddress]) -> String {
        let others = nodes.prefix(nodesMax).map { " \($0.webSocketURL)" }.joined()
        return """
            default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'\(others); \
            worker-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
            """
    }

    /// The most nodes in the policy, so that it stays within what clients and proxies accept of a header. A page that may not
    /// connect to a node stays at the one that sent it there.
    private static let nodesMax = 64

    /// - Parameter nodes: the other nodes of the cluster.
    func response(isHead: Bool, nodes: [NodeAddress] = []) -> Response {
        let buffer = Self.buffers[self] ?? ByteBuffer()
        let headers: HTTPFields = [
            .contentType: contentType,
            .contentLength: String(buffer.readableBytes),
            .contentSecurityPolicy: Self.policy(nodes),
            .xContentTypeOptions: "nosniff",
            .referrerPolicy: "no-referrer",
            // The page is small and changes with the server's version only.
            .cacheControl: "no-cache",
        ]
        let body = isHead ? ResponseBody() : ResponseBody(byteBuffer: buffer)
        return Response(status: .ok, headers: headers, body: body)
    }
}

extension HTTPField.Name {
    static let referrerPolicy = Self("Referrer-Policy")!
    static let link = Self("Link")!
    static let participant = Self("Nagare-Participant")!
    static let acceptPost = Self("Accept-Post")!
    static let acceptPatch = Self("Accept-Patch")!
}
