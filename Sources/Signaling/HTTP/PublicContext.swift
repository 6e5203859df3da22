import Hummingbird
import Logging
import NIOCore
import Room

/// What is known of a request beside the request itself.
struct PublicContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
        network = ClientNetwork(of: source.channel.remoteAddress)
    }

    /// Where the client comes from: behind a trusted proxy, where that says.
    var network: ClientNetwork
}
