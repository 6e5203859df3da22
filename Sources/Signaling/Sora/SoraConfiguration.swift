public import Access
public import Wire

/// What the signaling for Sora's clients needs to know.
public struct SoraConfiguration: Sendable {
    /// TURN servers that clients are told. iOS reaches a node through one only.
    public struct TURN: Hashable, Sendable {
        /// `turn:HOST:PORT?transport=udp` and the like.
        public var urls: [String]
        public var username: String
        public var credential: String

        public init(urls: [String], username: String, credential: String) {
            self.urls = urls
            self.username = username
            self.credential = credential
        }
    }

    public var turn: TURN?
    /// Time between two pings of a connection.
    public var pingInterval: Duration = .seconds(5)
    /// How long a connection may leave pings unanswered once its transport was up.
    public var pongTimeout: Duration = .seconds(60)
    /// How long a socket may stay without a `connect`.
    public var connectTimeout: Duration = .seconds(10)
    /// How long an answer to an offer may take.
    public var answerTimeout: Duration = .seconds(30)
    /// How long it may take from the first answer until the transport is up.
    public var connectionCreatedTimeout: Duration = .seconds(60)
    /// What a client sends that does not choose.
    public var videoCodec: CodecName = .vp9
    /// How many speakers are in focus when nobody says otherwise: 1…8.
    public var spotlightNumber = 8
    public var spotlightFocusRID: RequestedRID = .r1
    public var spotlightUnfocusRID: RequestedRID = .r0
    /// Whether a client may choose its own `bundle_id`.
    public var acceptsBundleID = true
    /// As operators' tools and webhooks are told.
    public var node = NodeIdentity()

    public init() {}
}

/// How a node calls itself to webhooks, clients and operators' tools.
public struct NodeIdentity: Hashable, Sendable {
    /// The machine's name, or what the operator calls the node.
    public var name: String
    /// What tells this installation from others at a webhook that serves several.
    public var label: String
    /// The version of the program.
    public var version: String

    public init(name: String = "nagare", label: String = "Nagare", version: String = "0") {
        self.name = name
        self.label = label
        self.version = version
    }
}
