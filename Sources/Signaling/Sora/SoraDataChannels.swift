import Access
import ChannelTypes
import MediaTypes

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

    /// Whether the signaling moves to data channels. With the labels of the channel extension it stays on the WebSocket, and
    /// each message to the client names its sender's user.
    let carriesSignaling: Bool
    /// Whether the connection goes on when the WebSocket closes.
    let ignoresSocketLoss: Bool
    let messages: [RequestedDataChannel]
    /// What the client may call over the channel `rpc`.
    let methods: [SoraRPC.Method]

    /// - Returns: `nil` for a client without data channels.
    init?(_ connect: SoraConnect, _ grants: Grants) {
        let labels = connect.messageLabels
        // A grant cannot move the signaling of a client that may know the channel extension only.
        let granted = connect.knowsExtension ? nil : grants.dataChannelSignaling
        carriesSignaling = granted ?? connect.wantsDataChannelSignaling ?? false
        if carriesSignaling {
            messages = grants.dataChannels ?? connect.dataChannels
            ignoresSocketLoss = grants.ignoresWebSocketLoss ?? connect.ignoresWebSocketLoss ?? false
        } else {
            messages = labels.compactMap { label -> RequestedDataChannel? in
                guard let channels = grants.dataChannels else { return RequestedDataChannel(label: label) }
                var channel = channels.first { $0.label == label }
                channel?.isCompressed = false
                return channel
            }
            ignoresSocketLoss = false
        }
        let ofChannels = carriesSignaling && (connect.options != nil || grants.options != nil)
        methods = SoraRPC.Method.allCases.filter { method in
            if ofChannels, case .channel = method { return true }
            return grants.rpcMethods?.contains(method.name) == true
        }
        if grants.dataChannelSignaling == false || !carriesSignaling && messages.isEmpty { return nil }
    }

    private var labels: [Label] {
        (carriesSignaling ? Label.allCases : [.rpc]).filter { $0 != .rpc || !methods.isEmpty }
    }

    /// What the rooms open to the client.
    var plan: DataPlan {
        let signaling = labels.map { label in
            DataChannelPlan(
                DataChannelParameters(label: label.rawValue, priority: Self.signalingPriority),
                use: .signaling(sends: label.direction != .recvonly),
                isCompressed: true
            )
        }
        guard carriesSignaling else { return DataPlan(signaling + messages.map(channelPlan)) }
        return DataPlan(signaling + messages.map(channelPlan)) { reason in
            SoraClose(reason).map { close in
                (Label.signaling.rawValue, Array(SoraServerMessage.close(close.close).utf8))
            }
        }
    }

    private func header(of channel: RequestedDataChannel) -> DataChannelPlan.Header {
        guard carriesSignaling else { return .user }
        return channel.hasSenderHeader ? .connection : .none
    }

    private func channelPlan(_ channel: RequestedDataChannel) -> DataChannelPlan {
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
            header: header(of: channel)
        )
    }

    /// The offer's `data_channels`.
    var json: String {
        let signaling = labels.map { label in
            Self.entry(label.rawValue, label.direction, isCompressed: true, header: .none)
        }
        return jsonArray(
            signaling
                + messages.map {
                    Self.entry(
                        $0.label,
                        $0.direction,
                        isCompressed: $0.isCompressed,
                        header: header(of: $0)
                    )
                }
        )
    }

    private static func entry(
        _ label: String,
        _ direction: RequestedDataChannel.Direction,
        isCompressed: Bool,
        header: DataChannelPlan.Header
    ) -> String {
        var entry = JSONObjectWriter()
        entry.add("label", label)
        entry.add("direction", direction.rawValue)
        entry.add("compress", isCompressed)
        switch header {
        case .none: break
        case .connection:
            entry.add("header", json: #"[{"type":"sender_connection_id","length":\#(connectionIDBytes)}]"#)
        case .user: entry.add("header", json: #"[{"type":"sender_user"}]"#)
        }
        return entry.text
    }
}
