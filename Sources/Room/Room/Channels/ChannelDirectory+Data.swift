import Admission
package import ChannelTypes

extension ChannelDirectory {
    /// Sends messages to a participant on an open channel of its ``DataPlan``, compressed if the channel is. Does nothing for an
    /// unknown participant or label.
    package func send(_ messages: [[UInt8]], on label: String, to id: ParticipantID) async {
        await node.actor(of: id)?.send(messages, on: label, to: id)
    }

    /// Messages between participants that were dropped.
    package var droppedMessages: [MessageDropReason: UInt64] {
        get async { node.withModel { $0.droppedMessages } }
    }
}
