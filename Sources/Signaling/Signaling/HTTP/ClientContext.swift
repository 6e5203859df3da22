import Hummingbird
import Logging
import NIOCore
import Room

/// The context of a request: its connection and the client's network.
struct ClientContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
        network = ClientNetwork(of: source.channel.remoteAddress)
    }

    /// The client's network, which a trusted proxy may name.
    var network: ClientNetwork
}
