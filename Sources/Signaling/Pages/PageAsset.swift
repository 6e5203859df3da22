/// A file of the built-in page, or of the browser module on which it is built. The raw value is its name in URLs.
package enum PageAsset: String, Hashable, Sendable, CaseIterable {
    case page = "index.html"
    case style = "page.css"
    case script = "page.js"
    case bar = "bar.js"
    case callView = "call-view.js"
    case channelView = "channel-view.js"
    case chat = "chat.js"
    case controls = "controls.js"
    case form = "form.js"
    case invite = "invite.js"
    case notices = "notices.js"
    case numbers = "numbers.js"
    case pattern = "pattern.js"
    case people = "people.js"
    case preview = "preview.js"
    case shortcuts = "shortcuts.js"
    case speaker = "speaker.js"
    case stage = "stage.js"
    case stringsEnglish = "strings-en.js"
    case stringsJapanese = "strings-ja.js"
    case tiles = "tiles.js"
    case token = "token.js"
    case ui = "ui.js"
    case warnings = "warnings.js"
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
    package init?(name: String) { self.init(rawValue: name.isEmpty ? Self.page.rawValue : name) }

    package var bytes: [UInt8] {
        switch self {
        case .page: PackageResources.index_html
        case .style: PackageResources.page_css
        case .script: PackageResources.page_js
        case .bar: PackageResources.bar_js
        case .callView: PackageResources.call_view_js
        case .channelView: PackageResources.channel_view_js
        case .chat: PackageResources.chat_js
        case .controls: PackageResources.controls_js
        case .form: PackageResources.form_js
        case .invite: PackageResources.invite_js
        case .notices: PackageResources.notices_js
        case .numbers: PackageResources.numbers_js
        case .pattern: PackageResources.pattern_js
        case .people: PackageResources.people_js
        case .preview: PackageResources.preview_js
        case .shortcuts: PackageResources.shortcuts_js
        case .speaker: PackageResources.speaker_js
        case .stage: PackageResources.stage_js
        case .stringsEnglish: PackageResources.strings_en_js
        case .stringsJapanese: PackageResources.strings_ja_js
        case .tiles: PackageResources.tiles_js
        case .token: PackageResources.token_js
        case .ui: PackageResources.ui_js
        case .warnings: PackageResources.warnings_js
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

    /// The media type that it is served with.
    package var contentType: String {
        switch self {
        case .page: "text/html; charset=utf-8"
        case .style: "text/css; charset=utf-8"
        case .moduleTypes, .callTypes: "text/plain; charset=utf-8"
        default: "text/javascript; charset=utf-8"
        }
    }
}
