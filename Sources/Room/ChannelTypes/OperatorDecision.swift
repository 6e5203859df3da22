/// An operator's decision that ends connections.
package enum OperatorDecision: Hashable, Sendable {
    /// A user is removed from a channel. It may join again.
    case kicked(_ user: String, from: ChannelName)
    /// A channel is closed. Its name can be used again.
    case terminated(ChannelName)
    case blocked(Block)
}
