/// Takes the events of a channel where an `AsyncStream` does not fit.
public protocol ChannelClientDelegate: AnyObject, Sendable {
    /// Called with each event, in order, on the client's executor.
    func channelClient(_ client: ChannelClient, didReceive event: ChannelEvent)
}
