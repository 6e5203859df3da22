import Base
import MediaTypes
import SRTP
import Wire

extension MediaLinkKeySchedule {
    struct End {
        let location: MediaLocation
        let secret: LinkSecret
    }

    /// The keys of the direction between two ends.
    init(from sender: End, to receiver: End) {
        var context: [UInt8] = [TransferMessage.version]
        for location in [sender.location, receiver.location] {
            context.append(bigEndian: location.node.rawValue)
            context.append(bigEndian: location.loop.rawValue)
        }
        self.init(receiverSecret: receiver.secret.bytes, senderSecret: sender.secret.bytes, context: context)
    }
}
