import Access
import MediaTypes
import Room

/// The data channels of a connection: its signaling, and messages between clients.
struct SoraDataChannels: Sendable {
    /// The channels of signaling. All are reliable and ordered, and each message is a zlib stream.
    enum Label: String, CaseIterable {
        case signaling, notify, push, stats
        /// Only of clients that may call methods.
        case rpc

        /// As the client sees it.
        fileprivate var direction: RequestedDataChannel.Direction {
            switch self {
            case .signaling, .stats, .rpc: .sendrecv
            case .notify, .push: .recvonly
            }
        }
    }

    /// Higher than that of messages, so that signaling does not wait for them.
    private static let signalingPriority: UInt16 = 1_024
    /// The length of a `connection_id`.
    private static let connectionIDBytes = 26

    /// Whether the connection goes on when the WebSocket closes.
    let ignoresSocketLoss: Bool
    let messages: [RequestedDataChannel]
    /// What the client may call over the channel `rpc`.
    let methods: [SoraRPC.Method]

    private var labels: [Label] { Label.allCases.filter { $0 != .rpc || !methods.isEmpty } }

    /// What the rooms open to the client.
    var plan: DataPlan {
        let signaling = labels.map { label in
            DataChannelPlan(
                DataChannelParameters(label: label.rawValue, priority: Self.signalingPriority),
                use: .signaling,
                isCompressed: true
            )
        }
        return DataPlan(signaling + messages.map(Self.plan)) { reason in
            SoraClose(reason).map { close in
                (Label.signaling.rawValue, Array(SoraServerMessage.close(close.close).utf8))
            }
        }
    }

    private static func plan(_ channel: RequestedDataChannel) -> DataChannelPlan {
        let reliability: DataChannelParameters.Reliability =
            if let count = channel.retransmitsMax {
                .retransmissions(count)
            } else if let milliseconds = channel.packetLifetimeMax {
                .lifetime(milliseconds: milliseconds)
            } else {
                .reliable
            }
        return DataChannelPlan(
            DataChannelParameters(
                label: channel.label,
                subprotocol: channel.subprotocol,
                isOrdered: channel.isOrdered,
                reliability: reliability
            ),
            use: .messages(sends: channel.direction != .recvonly, receives: channel.direction != .sendonly),
            isCompressed: channel.isCompressed,
            hasSenderHeader: channel.hasSenderHeader
        )
    }

    /// The offer's `data_channels`.
    var json: String {
        let signaling = labels.map { label in
            Self.entry(label.rawValue, label.direction, isCompressed: true, hasSenderHeader: false)
        }
        return jsonArray(
            signaling
                + messages.map {
                    Self.entry(
                        $0.label,
                        $0.direction,
                        isCompressed: $0.isCompressed,
                        hasSenderHeader: $0.hasSenderHeader
                    )
                }
        )
    }

    private static func entry(
        _ label: String,
        _ direction: RequestedDataChannel.Direction,
        isCompressed: Bool,
        hasSenderHeader: Bool
    ) -> String {
        var entry = JSONObjectWriter()
        entry.add("label", label)
        entry.add("direction", direction.rawValue)
        entry.add("compress", isCompressed)
        if hasSenderHeader {
            entry.add("header", json: #"[{"type":"sender_connection_id","length":\#(connectionIDBytes)}]"#)
        }
        return entry.text
    }
}
