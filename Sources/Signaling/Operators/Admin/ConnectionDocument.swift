import Access
import Base
import ChannelTypes
import JSON
import MediaTypes
import Room
import Web
import Wire

extension Connection {
    /// The connection in lists and statistics.
    var json: [String: JSONValue] {
        var members: [String: JSONValue] = [
            "channel_id": .string(channel.value),
            "session_id": .string(session.value),
            "client_id": .string(member.clientID),
            "bundle_id": .string(member.bundleID),
            "connection_id": .string(member.id.value),
            "role": .string(member.role.rawValue),
            "created_time": .integer(createdAt / 1_000_000_000),
            "created_timestamp": .string(Timestamp.text(unixNanoseconds: createdAt)),
            "audio": .bool(member.sendsAudio),
            "video": .bool(member.sendsVideo),
            "simulcast": .bool(isSimulcast),
            "spotlight": .bool(spotlight != nil),
            "multistream": true,
            "connected": .bool(isConnected),
            "channel_role": .string(channelRole.rawValue),
            "source": .string(source.rawValue),
            "audio_muted": .bool(muted.contains(.audio)),
            "video_muted": .bool(muted.contains(.video)),
        ]
        members.merge(agent.members) { $1 }
        for publication in publications {
            let name = "\(publication.kind.rawValue)_codec_type"
            if let codec = publication.codec { members[name] = .string(codec.rawValue.uppercased()) }
        }
        members["receive_bit_rate"] = receiveBitsPerSecondMax.map { .integer($0 / 1_000) }
        members["display_name"] = displayName.map { .string($0) }
        members["event_metadata"] = eventMetadataJSON.flatMap { try? JSONValue(parsing: $0) }
        members["setup_time_msec"] = setupTime.map { .double(($0 / .milliseconds(1)).rounded()) }
        return members
    }
}

extension PeerStatistics {
    /// The current statistics of the transport and its streams. Times are in milliseconds, rates in bit/s, and loss is a
    /// fraction from 0 to 1.
    var json: JSONValue {
        var members: [String: JSONValue] = [
            "connected": .bool(isConnected),
            "received": .array(received.map(\.json)),
            "sent": .array(sent.map(\.json)),
            "sending": sending.json,
            "received_bits_per_second": .integer(received.reduce(into: 0) { $0 &+= $1.bitsPerSecond }),
            "sent_bits_per_second": .integer(sent.reduce(into: 0) { $0 &+= $1.bitsPerSecond }),
            "total_received_byte_size": .integer(received.reduce(into: UInt64(0)) { $0 &+= $1.bytes }),
            "total_sent_byte_size": .integer(sent.reduce(into: UInt64(0)) { $0 &+= $1.bytes }),
        ]
        members["rtt_msec"] = roundTrip.map { $0.milliseconds }
        members["remote_address"] = path.map { .string($0.remote.description) }
        return .object(members)
    }
}

extension PeerStatistics.Received {
    fileprivate var json: JSONValue {
        var members: [String: JSONValue] = [
            "mid": .string(mid.value), "kind": .string(kind.rawValue), "ssrc": .integer(ssrc.rawValue),
            "flowing": .bool(isFlowing), "bits_per_second": .integer(bitsPerSecond), "packets": .integer(packets),
            "byte_size": .integer(bytes), "packets_lost": .integer(packetsLost), "jitter_msec": jitter.milliseconds,
            "key_frame_requests": .integer(keyFrameRequests),
        ]
        members["rid"] = rid.map { .string($0.value) }
        members["codec"] = codec.map { .string($0.rawValue.uppercased()) }
        if kind == .video { members["screen"] = .bool(isScreen) }
        return .object(members)
    }
}

extension PeerStatistics.Sent {
    fileprivate var json: JSONValue {
        var members: [String: JSONValue] = [
            "mid": .string(mid.value), "kind": .string(kind.rawValue), "ssrc": .integer(ssrc.rawValue),
            "playing": .bool(source != nil), "bits_per_second": .integer(bitsPerSecond), "packets": .integer(packets),
            "byte_size": .integer(bytes), "retransmissions": .integer(retransmissions),
            "key_frame_requests": .integer(keyFrameRequests),
        ]
        members["source_mid"] = source.map { .string($0.mid.value) }
        members["rid"] = rid.map { .string($0.value) }
        members["fraction_lost"] = fractionLost.map { .double($0) }
        members["packets_lost"] = packetsLost.map { .integer($0) }
        members["jitter_msec"] = jitter?.milliseconds
        return .object(members.merging(layers) { $1 })
    }
}
