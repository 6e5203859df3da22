package import ChannelTypes
import Hummingbird
import Logging
package import NIOCore
import Room

/// The context of a request: its connection and the client's network.
package struct ClientContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    package let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
        network = ClientNetwork(of: source.channel.remoteAddress)
    }

    /// The client's network, which a trusted proxy may name.
    package var network: ClientNetwork
}
