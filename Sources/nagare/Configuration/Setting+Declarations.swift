import Access

/// The table of settings. A setting is declared here and read in `NodeConfiguration.resolve`; the command line's flag, the
/// environment variable, the file's key, `--help`, the reference and `ops/nagare.example.yaml` follow.
extension Setting {
    var declaration: SettingDeclaration {
        switch self {
        case .dev:
            SettingDeclaration(
                .development,
                .flag,
                "",
                default: .value("false"),
                "Listen on loopback only, without authentication or configuration.",
                notes: """
                    For tests on one machine. Media also listens on the machine's first address, because \
                    Firefox never pairs loopback addresses.
                    """
            )
        case .http:
            SettingDeclaration(
                .http,
                .value,
                "host:port",
                default: .value("0.0.0.0:8080"),
                "Serve the page, WHIP, WHEP and Sora signaling here.",
                notes: "IPv6 addresses need quotation marks: \"[::]:8080\" also accepts IPv4."
            )
        case .tlsCertificate:
            SettingDeclaration(
                .http,
                .value,
                "file",
                "Serve HTTPS with this certificate chain, PEM.",
                notes: """
                    Browsers allow camera and microphone only over HTTPS or on localhost: set tls-cert and tls-key, or \
                    use a reverse proxy that terminates TLS.
                    """,
                examples: ["/etc/nagare/fullchain.pem"]
            )
        case .tlsKey:
            SettingDeclaration(
                .http,
                .value,
                "file",
                "The private key of the certificate, PEM.",
                examples: ["/etc/nagare/privkey.pem"]
            )
        case .trustedProxy:
            SettingDeclaration(
                .http,
                .list,
                "ip[/bits]",
                "Trust the client addresses that this reverse proxy, or range of proxies, reports.",
                notes: """
                    Many limits apply per client address. Behind a proxy that is not listed, all clients share the proxy's \
                    address.
                    """,
                examples: ["127.0.0.1", "10.0.0.0/8"]
            )
        case .proxyHeader:
            SettingDeclaration(
                .http,
                .value,
                "name",
                default: .value("x-forwarded-for"),
                "How proxies report addresses: x-forwarded-for or proxy-protocol.",
                notes: """
                    x-forwarded-for is a header field of each request. proxy-protocol is the header of the PROXY protocol at \
                    the start of each connection.
                    """
            )
        case .duplicateUser:
            SettingDeclaration(
                .http,
                .value,
                "policy",
                default: .value("allow"),
                "When a user joins a channel again: allow both connections, replace the old one, or refuse the new one.",
                notes: """
                    A user has the client_id of its token or of the webhook's answer, or publishes to one signed URL. Clients \
                    that choose their own client_id are always allowed, because others can choose the same. Users of app \
                    tokens are always replaced.
                    """
            )
        case .resumeGrace:
            SettingDeclaration(
                .http,
                .value,
                "seconds",
                default: .value("15"),
                "Keep the place of a member whose connection is lost for this time, 0 to 300; 0 keeps none.",
                notes: """
                    It applies to clients that can resume, and to WHIP publishers that are known by a token or a signed URL.
                    """
            )
        case .channelLifetime:
            SettingDeclaration(
                .http,
                .value,
                "hours",
                default: .value("0"),
                "End a channel this long after its first client joined, 1 to 8760; 0 for never.",
                notes: """
                    Its name can be used again at once. 48 is the limit of the ARTC reference.
                    """
            )
        case .media:
            SettingDeclaration(
                .media,
                .list,
                "host:port",
                default: .value("0.0.0.0:7000"),
                "Receive and send media here, UDP and TCP; loop i takes port + i.",
                notes: """
                    With four loops, ports 7000 to 7003 must be open. Usually there is one address for IPv4 and one for IPv6.
                    """,
                examples: ["0.0.0.0:7000", "\"[2001:db8::5]:7000\""]
            )
        case .announce:
            SettingDeclaration(
                .media,
                .list,
                "ip",
                default: .described("those of the network interfaces"),
                "Tell clients this address of the media ports.",
                notes: "Behind a one-to-one NAT, as on most cloud machines, announce the public address.",
                examples: ["203.0.113.7", "\"2001:db8::7\""]
            )
        case .loops:
            SettingDeclaration(
                .media,
                .value,
                "n",
                default: .described("one per core"),
                "Run this many media loops, each on a thread of its own.",
                notes: "A large channel uses several loops.",
                examples: ["4"]
            )
        case .controlLoops:
            SettingDeclaration(
                .media,
                .value,
                "n",
                default: .value("1"),
                "Run channels on this many control loops, each on a thread of its own, without media."
            )
        case .srtpBackend:
            SettingDeclaration(
                .media,
                .value,
                "name",
                default: .value("auto"),
                "Encrypt media with libsrtp2, openssl or ipsec-mb; auto takes the fastest available.",
                notes: "The available ones depend on the build and the processor."
            )
        case .udpGSO:
            SettingDeclaration(
                .media,
                .value,
                "on|off",
                default: .value("on"),
                "Pass datagrams for one client to the kernel together (UDP GSO).",
                notes: "This saves most of the cost of system calls. Turn it off for faulty network drivers."
            )
        case .udpGRO:
            SettingDeclaration(
                .media,
                .value,
                "on|off",
                default: .value("on"),
                "Receive datagrams of one client from the kernel together (UDP GRO)."
            )
        case .bandwidthEstimation:
            SettingDeclaration(
                .media,
                .value,
                "on|off",
                default: .value("on"),
                "Estimate what the network of each viewer carries, and send the best layers that fit.",
                notes: """
                    When off, each viewer is sent the layers that it asks for, whether its network carries them or not.
                    """
            )
        case .bandwidthProbing:
            SettingDeclaration(
                .media,
                .value,
                "on|off",
                default: .value("on"),
                "Send short bursts of padding or copies to find out whether a viewer's network carries a better layer.",
                notes: "When off, the estimate rises only with the media that is sent."
            )
        case .sendRateMin:
            SettingDeclaration(
                .media,
                .value,
                "kbit/s",
                default: .value("30"),
                "The lowest estimate for one viewer, however bad its network is."
            )
        case .sendRateStart:
            SettingDeclaration(
                .media,
                .value,
                "kbit/s",
                default: .value("600"),
                "The estimate for a viewer whose network is not known yet."
            )
        case .sendRateMax:
            SettingDeclaration(
                .media,
                .value,
                "kbit/s",
                default: .value("20000"),
                "The most that one viewer is sent, all its media together.",
                notes: """
                    receive_bit_rate of a grant and LimitConnection of the admin API set lower limits for single viewers.
                    """
            )
        case .pauseUnusedLayers:
            SettingDeclaration(
                .media,
                .value,
                "on|off",
                default: .value("on"),
                "Ask Sora clients to stop sending simulcast layers that nobody has wanted for five seconds.",
                notes: "A layer is sent again as soon as a viewer wants it."
            )
        case .iceTCP:
            SettingDeclaration(
                .media,
                .value,
                "on|off",
                default: .value("on"),
                "Accept media over TCP on the media ports too, for clients whose network blocks UDP.",
                notes: """
                    Clients use it only where UDP does not work. Open the ports for TCP as for UDP. The node's TURN server \
                    listens on TCP with it.
                    """
            )
        case .turn:
            SettingDeclaration(
                .media,
                .value,
                "off|auto|on",
                default: .value("auto"),
                "Be a TURN server on the media ports: for no client, for those that need one, or for all.",
                notes: """
                    Over UDP, and over TCP unless ice-tcp is off. The server reaches nothing but the media of its own client's \
                    session, or in a one-to-one call the other member. Those that need one are members of one-to-one calls and, \
                    without turn-url, Sora iOS SDKs.
                    """
            )
        case .turnTLSPort:
            SettingDeclaration(
                .media,
                .value,
                "port",
                "Be a TURN server over TLS on this TCP port; loop i takes port + i.",
                notes: """
                    For clients whose network permits TLS only. It has the certificate of tls-cert and tls-key, listens at the \
                    addresses of media, and needs turn-tls-name. With the port of http, HTTPS and TURN share it; give TURN a \
                    name of its own then, which turn-tls-name tells.
                    """,
                examples: ["5349"]
            )
        case .turnTLSName:
            SettingDeclaration(
                .media,
                .value,
                "host",
                "Tell clients this name of the TURN server over TLS, which the certificate must be for.",
                examples: ["turn.example.org"]
            )
        case .token:
            SettingDeclaration(
                .access,
                .value,
                "token",
                isSecret: true,
                "Admit only clients that present this Bearer token.",
                notes: """
                    Letters, digits and -._~+/= only, or @ and the file that has them, which a reload reads again.
                    """,
                examples: ["\"@/etc/nagare/token\""]
            )
        case .jwtKey:
            SettingDeclaration(
                .access,
                .list,
                "alg[/id]:@file",
                isSecret: true,
                "Admit only clients that present a token (JWT) signed with this key: hs256, rs256, es256 or eddsa.",
                notes: """
                    hs256:@FILE names a secret of at least 32 bytes, rs256:@FILE, es256:@FILE and eddsa:@FILE a private or public \
                    key in PEM. RSA keys have 2048 to 8192 bits. The key itself can replace @FILE. A key ID (kid) follows the algorithm: es256/ID:@FILE. \
                    All keys are valid at the same time. WHIP and WHEP clients present the token as "Authorization: Bearer ...", \
                    Sora clients as metadata.access_token. "nagare token --config FILE --channel NAME" makes one.
                    """,
                examples: ["hs256:@/etc/nagare/jwt.secret", "es256/2026-01:@/etc/nagare/jwt.pem"]
            )
        case .jwks:
            SettingDeclaration(
                .access,
                .value,
                "file-or-url",
                "Admit only clients that present a token (JWT) signed with a key of this JSON Web Key Set (RFC 7517).",
                notes: """
                    The public keys of a login service, for RS256, ES256 and EdDSA, besides those of jwt-key. A URL has to be \
                    https, or http on this machine. Its keys are fetched every five minutes, or as the server's max-age says, \
                    and at once for a token with an unknown key ID (kid). While the server fails, the keys in hand stay in use.
                    """,
                examples: ["https://login.example.org/.well-known/jwks.json"]
            )
        case .jwksCA:
            SettingDeclaration(
                .access,
                .value,
                "file",
                default: .described("the system's"),
                "Trust the certificates in this file for the server of jwks, PEM.",
                examples: ["/etc/nagare/login-ca.pem"]
            )
        case .app:
            SettingDeclaration(
                .access,
                .list,
                "id:@file",
                isSecret: true,
                "Admit only clients that present a token of this app, made with the app's key.",
                notes: """
                    The file has the key of the app, which its application server knows too. The key itself can replace \
                    @FILE. A token is the Base64 of {"appid", "channelid", "userid", "nonce", "timestamp", "token"} and is \
                    presented as a JWT is; Sora clients may also send the members in metadata. The first app that \
                    uses a channel owns it until nobody is there, and tokens of other apps are refused. "nagare token --app ID:@FILE --channel NAME --user NAME" makes one.
                    """,
                examples: ["live:@/etc/nagare/live.key", "studio:@/etc/nagare/studio.key"]
            )
        case .appDisabled:
            SettingDeclaration(
                .access,
                .list,
                "id",
                "Refuse the tokens of this app, and say that it is disabled.",
                examples: ["studio"]
            )
        case .appProfile:
            SettingDeclaration(
                .access,
                .list,
                "id:communication|interactive",
                "Give all channels of this app this profile, whatever its clients ask for.",
                notes: """
                    In an interactive channel hosts publish, and the audience only receives. Clients of other apps, with a JWT or \
                    without a token say by themselves what their channel is.
                    """,
                examples: ["studio:interactive"]
            )
        case .appToken:
            SettingDeclaration(
                .access,
                .value,
                "lenient|strict",
                default: .value("lenient"),
                "Accept all tokens of apps, or only strict ones, whose fields cannot be moved, as is recommended.",
                notes: """
                    The published hash does not say where a field ends: a token for channel room1 and user 2 also admits user 12 \
                    of channel room, and ends the connection of that user. The nonce of a strict token is part of its hash, \
                    begins with the lengths of channel and user ID, such as "4.2." for room and 12, and does not end in a digit. \
                    "nagare token" makes strict tokens, which lenient nodes accept, too.
                    """
            )
        case .urlKey:
            SettingDeclaration(
                .access,
                .list,
                "slot:@file",
                isSecret: true,
                "Admit only clients whose WHIP or WHEP URL is signed with this key: primary or secondary.",
                notes: """
                    A signed URL has ?auth_key=TIMESTAMP-RAND-UID-HASH, where HASH is the MD5 of PATH-TIMESTAMP-RAND-UID-KEY. \
                    A key has 16 to 255 characters, as openssl rand -hex 16 makes. Both keys are valid at the same time, so that \
                    one can be replaced. "nagare token --url URL --url-key primary:@FILE" makes one.
                    """,
                examples: ["primary:@/etc/nagare/url.key", "secondary:@/etc/nagare/url2.key"]
            )
        case .urlValidity:
            SettingDeclaration(
                .access,
                .value,
                "seconds",
                default: .value("1800"),
                "The time from a signed URL's timestamp to its expiry; with 0 the timestamp is the expiry."
            )
        case .urlExpiry:
            SettingDeclaration(
                .access,
                .value,
                "publishers|all",
                default: .value("publishers"),
                "End the sessions of publishers when their signed URL expires, or those of viewers too.",
                notes: """
                    A viewer's URL is always checked when it joins. Stock players cannot renew a URL: with all, they are ended at \
                    its expiry.
                    """
            )
        case .authWebhookURL:
            SettingDeclaration(
                .access,
                .value,
                "url",
                "Ask this server whether to admit each client.",
                notes: """
                    The server receives JSON by POST and answers {"allowed": true} with grants, or {"allowed": false, \
                    "reason": "..."}.
                    """,
                examples: ["https://hooks.example.org/auth"]
            )
        case .eventWebhookURL:
            SettingDeclaration(
                .access,
                .value,
                "url",
                "Report every connection to this server.",
                examples: ["https://hooks.example.org/events"]
            )
        case .sessionWebhookURL:
            SettingDeclaration(
                .access,
                .value,
                "url",
                "Report every session to this server.",
                examples: ["https://hooks.example.org/sessions"]
            )
        case .statsWebhookURL:
            SettingDeclaration(
                .access,
                .value,
                "url",
                "Send this server the statistics that Sora's clients report.",
                notes:
                    "Clients report every 30 seconds, unless their grant has user_agent_stats false. A slow server misses reports.",
                examples: ["https://hooks.example.org/stats"]
            )
        case .ayameAuthWebhookURL:
            SettingDeclaration(
                .access,
                .value,
                "url",
                "Ask this server whether to admit each client of the 1:1 relay (Ayame protocol).",
                notes: """
                    The server receives JSON by POST and answers {"allowed": true} with "iceServers" and "authzMetadata", or \
                    {"allowed": false, "reason": "..."}. A token of the node is checked first, if the node has tokens.
                    """,
                examples: ["https://hooks.example.org/ayame/auth"]
            )
        case .ayameDisconnectWebhookURL:
            SettingDeclaration(
                .access,
                .value,
                "url",
                "Report every client that leaves the 1:1 relay to this server.",
                examples: ["https://hooks.example.org/ayame/disconnect"]
            )
        case .relayMedia:
            SettingDeclaration(
                .access,
                .value,
                "path",
                default: .value("direct"),
                "The path of the media of 1:1 calls (Ayame protocol): direct from client to client, or through the server.",
                notes: """
                    With direct, a client can ask for the server by "media": "server" in its register message. The answer of \
                    ayame-auth-webhook-url can have "media" for its room.
                    """
            )
        case .webhookTimeout:
            SettingDeclaration(
                .access,
                .value,
                "seconds",
                default: .value("5"),
                "The time limit for a webhook server's answer.",
                notes: "A slow server delays only new clients."
            )
        case .webhookUser:
            SettingDeclaration(
                .access,
                .value,
                "name",
                "The user for HTTP Basic authentication to those servers.",
                examples: ["nagare"]
            )
        case .webhookPassword:
            SettingDeclaration(
                .access,
                .value,
                "password",
                isSecret: true,
                "The user's password.",
                examples: ["change-me"]
            )
        case .webhookSecret:
            SettingDeclaration(
                .access,
                .value,
                "@file",
                isSecret: true,
                "Sign webhooks with this secret, or that of @ and its file, in the header Nagare-Signature.",
                examples: ["\"@/etc/nagare/webhook-secret\""]
            )
        case .webhookCA:
            SettingDeclaration(
                .access,
                .value,
                "file",
                default: .described("the system's"),
                "Trust the certificates in this file for those servers, PEM.",
                examples: ["/etc/nagare/hooks-ca.pem"]
            )
        case .nodeName:
            SettingDeclaration(
                .access,
                .value,
                "name",
                default: .described("the machine's name"),
                "The node's name in webhooks and Sora signaling.",
                examples: ["nagare-1"]
            )
        case .label:
            SettingDeclaration(
                .access,
                .value,
                "text",
                default: .value("Nagare"),
                "The installation's name in webhooks."
            )
        case .turnURL:
            SettingDeclaration(
                .sora,
                .list,
                "url",
                "Tell clients this TURN server: turn:HOST:PORT?transport=udp.",
                notes: """
                    Those of Sora signaling, WHIP and WHEP, and one-to-one calls. Sora's iOS SDK needs a TURN server, this one \
                    or the node's own.
                    """,
                examples: ["turn:203.0.113.5:3478?transport=udp", "turns:turn.example.org:443?transport=tcp"]
            )
        case .turnUsername:
            SettingDeclaration(.sora, .value, "name", "The user of the TURN servers.", examples: ["nagare"])
        case .turnCredential:
            SettingDeclaration(
                .sora,
                .value,
                "password",
                isSecret: true,
                "The password of the TURN servers' user.",
                examples: ["change-me"]
            )
        case .videoCodec:
            SettingDeclaration(
                .sora,
                .value,
                "codec",
                default: .described("VP9 for Sora's SDKs, VP8 for the browser module"),
                "The video codec of Sora clients that choose none: VP8, VP9, AV1, H264 or H265.",
                notes: """
                    Where a viewer over WHEP cannot decode it, the next sender that chooses none gets VP8 or H.264.
                    """,
                examples: ["VP8"]
            )
        case .spotlightNumber:
            SettingDeclaration(
                .sora,
                .value,
                "n",
                default: .value("8"),
                "How many speakers spotlight has in focus, 1 to 8."
            )
        case .spotlightFocusRID:
            SettingDeclaration(
                .sora,
                .value,
                "rid",
                default: .value("r1"),
                "The layer of speakers in focus: none, r0, r1 or r2."
            )
        case .spotlightUnfocusRID:
            SettingDeclaration(
                .sora,
                .value,
                "rid",
                default: .value("r0"),
                "The layer of all others: none, r0, r1 or r2."
            )
        case .dataChannels:
            SettingDeclaration(
                .sora,
                .value,
                "on|off",
                default: .value("on"),
                "Let clients have data channels: Sora clients for signaling and messages, WHIP and WHEP clients for messages."
            )
        case .clientBundleID:
            SettingDeclaration(
                .sora,
                .value,
                "on|off",
                default: .value("on"),
                "Let clients choose their bundle_id.",
                notes: "Clients with the same bundle_id do not receive each other's media."
            )
        case .pingInterval:
            SettingDeclaration(
                .sora,
                .value,
                "seconds",
                default: .value("5"),
                "The time between two pings of a Sora client, 1 to 30."
            )
        case .admin:
            SettingDeclaration(
                .admin,
                .value,
                "host:port",
                default: .value("127.0.0.1:3000"),
                "Serve /metrics, /healthz, /livez, /readyz, the admin API and the operators' API here.",
                notes: """
                    Metrics and probes have no authentication, and without admin-token the APIs have none: keep this address \
                    private.
                    """
            )
        case .adminTLSCertificate:
            SettingDeclaration(
                .admin,
                .value,
                "file",
                "Serve the admin address over HTTPS with this certificate chain, PEM.",
                notes: """
                    It may be that of tls-cert. Probes and Prometheus have to use https then, and commands --api \
                    https://HOST:PORT, with --api-ca for an authority of your own.
                    """,
                examples: ["/etc/nagare/admin.pem"]
            )
        case .adminTLSKey:
            SettingDeclaration(
                .admin,
                .value,
                "file",
                "The private key of the certificate of the admin address, PEM.",
                examples: ["/etc/nagare/admin-key.pem"]
            )
        case .adminToken:
            SettingDeclaration(
                .admin,
                .value,
                "@file",
                isSecret: true,
                "Require this Bearer token for the admin API and the operators' API.",
                notes: """
                    Without it, the operators' API is served on loopback only. At least 16 letters, digits and -._~+/=, or \
                    @ and the file that has them.
                    """,
                examples: ["\"@/etc/nagare/admin.token\""]
            )
        case .adminReadToken:
            SettingDeclaration(
                .admin,
                .value,
                "@file",
                isSecret: true,
                "Permit requests with this Bearer token to read the admin API and the operators' API, but no changes.",
                notes: """
                    For dashboards and for people who watch calls. It is as long as admin-token, which it needs.
                    """,
                examples: ["\"@/etc/nagare/admin-read.token\""]
            )
        case .adminOrigin:
            SettingDeclaration(
                .admin,
                .list,
                "origin",
                "Permit pages of this web origin, or of all with *, to use the admin API.",
                notes: "Without any, browsers permit no page.",
                examples: ["https://ops.example.org"]
            )
        case .adminHostName:
            SettingDeclaration(
                .admin,
                .list,
                "name",
                "Accept this Host on a loopback admin listener, besides localhost and IP addresses.",
                notes: """
                    Other names are refused, which prevents DNS rebinding by web pages.
                    """,
                examples: ["ops.example.org"]
            )
        case .metricsChannels:
            SettingDeclaration(
                .admin,
                .value,
                "n",
                default: .value("0"),
                "Add series of the n channels with the most members to /metrics, 0 to 100.",
                notes: """
                    The names of these channels become labels. A channel that was among them once leaves series in Prometheus.
                    """
            )
        case .clusterStore:
            SettingDeclaration(
                .cluster,
                .value,
                "url",
                isSecret: true,
                "Join a cluster whose directory is this Redis or Valkey server.",
                notes: """
                    redis://HOST:6379, rediss:// with TLS, or redis+sentinel://HOST:26379,HOST:26379/MASTER. \
                    USER:PASSWORD@ may stand before the host. The server needs maxmemory-policy noeviction. No call depends on \
                    it while it runs.
                    """,
                examples: ["redis://127.0.0.1:6379"]
            )
        case .clusterStoreCA:
            SettingDeclaration(
                .cluster,
                .value,
                "file",
                default: .described("the system's authorities"),
                "Trust these authorities, PEM, for a store with TLS.",
                examples: ["/etc/nagare/store-ca.pem"]
            )
        case .clusterName:
            SettingDeclaration(
                .cluster,
                .value,
                "name",
                default: .value("nagare"),
                "The cluster's name: lower-case letters, digits and hyphens.",
                notes: "Clusters of different names can share a store."
            )
        case .clusterLink:
            SettingDeclaration(
                .cluster,
                .value,
                "host:port",
                "Accept links of other nodes here, over TCP.",
                notes: """
                    They are protected by TLS with the cluster-secret. Media between nodes goes over the media ports.
                    """,
                examples: ["10.0.0.5:7400"]
            )
        case .clusterAnnounce:
            SettingDeclaration(
                .cluster,
                .value,
                "host:port",
                default: .described("cluster-link"),
                "Tell other nodes this address of cluster-link.",
                examples: ["node-a.internal:7400"]
            )
        case .clusterSecret:
            SettingDeclaration(
                .cluster,
                .list,
                "@file",
                isSecret: true,
                "The secret that the cluster's nodes share: at least 32 characters, or @ and the file that has them.",
                notes: """
                    openssl rand -hex 32 makes one. To replace it, give all nodes the old one and then the new one, then the new \
                    one and then the old one, then the new one alone.
                    """,
                examples: ["\"@/etc/nagare/cluster.secret\""]
            )
        case .clusterUnsignedRecords:
            SettingDeclaration(
                .cluster,
                .value,
                "on|off",
                default: .value("off"),
                "Accept nodes whose records in the store are not signed with the cluster-secret.",
                notes: """
                    It is for the time of an upgrade from builds that do not sign. Whoever writes to the store can add such \
                    records, so turn it off afterwards.
                    """
            )
        case .region:
            SettingDeclaration(
                .cluster,
                .value,
                "name",
                "The node's region. New channels prefer nodes of the region in which they begin.",
                examples: ["eu-central"]
            )
        case .zone:
            SettingDeclaration(
                .cluster,
                .value,
                "name",
                "The node's zone in its region.",
                examples: ["eu-central-1a"]
            )
        case .publicURL:
            SettingDeclaration(
                .cluster,
                .value,
                "url",
                "Where clients reach this node, for other nodes that send clients here.",
                notes: "Without it, no client is sent here by another node.",
                examples: ["https://node-a.example.com"]
            )
        case .stateDirectory:
            SettingDeclaration(
                .operation,
                .value,
                "folder",
                "Keep files in this folder: the history of connections, and the nodes of the cluster.",
                notes: """
                    Without it the history of connections is in memory, and a node of a cluster needs the store at its start.
                    """,
                examples: ["/var/lib/nagare"]
            )
        case .historyHours:
            SettingDeclaration(
                .operation,
                .value,
                "hours",
                default: .value("24"),
                "Keep the history of ended connections for so long: how their media was and why they ended. 0 for none.",
                notes: """
                    GET /v1/connections of the admin API and the operators' page show it. It has addresses of clients.
                    """
            )
        case .otlpEndpoint:
            SettingDeclaration(
                .operation,
                .value,
                "url",
                "Send a trace of each join to this OpenTelemetry collector, by OTLP/HTTP with JSON encoding.",
                notes: """
                    The base of its URLs, as in OTEL_EXPORTER_OTLP_ENDPOINT: /v1/traces is appended.
                    """,
                examples: ["http://127.0.0.1:4318"]
            )
        case .otlpSampleRatio:
            SettingDeclaration(
                .operation,
                .value,
                "ratio",
                default: .value("1"),
                "Sample this share of the joins, from 0 to 1. A join with a traceparent header is sampled as its sender says.",
                notes: """
                    A join is rare beside media, and a trace of one has about ten spans.
                    """
            )
        case .limit:
            SettingDeclaration(
                .operation,
                .list,
                "name=value",
                "Change a limit on what clients may use; nagare limits lists them.",
                examples: ["channels=10000", "participants=20000"]
            )
        case .logLevel:
            SettingDeclaration(
                .operation,
                .value,
                "level",
                default: .value("info"),
                "Log at this level: trace, debug, info, notice, warning, error or critical."
            )
        case .logFormat:
            SettingDeclaration(
                .operation,
                .value,
                "format",
                default: .value("text"),
                "Log lines for people (text), or one JSON object a line (json)."
            )
        case .grace:
            SettingDeclaration(
                .operation,
                .value,
                "seconds",
                default: .value("10"),
                "The time limit of a graceful shutdown, which notifies clients and closes connections."
            )
        case .drainDeadline:
            SettingDeclaration(
                .operation,
                .value,
                "seconds",
                default: .value("0"),
                "Before a graceful shutdown, refuse new clients and wait this long for the others to leave.",
                notes: """
                    A second signal ends the wait. What stops the node has to allow this time and grace: TimeoutStopSec of \
                    systemd, stop_grace_period of Docker Compose, terminationGracePeriodSeconds of Kubernetes.
                    """
            )
        }
    }
}
