import Hummingbird
import Logging
import NIOCore

/// What is known of a request beside the request itself.
struct PublicContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}
