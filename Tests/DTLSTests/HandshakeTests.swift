import Base
import DTLS
import SRTP
import Testing
import Wire

struct HandshakeTests {
    @Test(arguments: DTLSCertificate.Curve.allCases)
    func `a certificate on any curve that peers use is accepted, on either side`(curve: DTLSCertificate.Curve) throws {
        let certificate = try DTLSCertificate.generate(curve: curve)
        for isClient in [true, false] {
            let link = try Link(
                clientCertificate: isClient ? certificate : Certificates.client,
                serverCertificate: isClient ? Certificates.server : certificate
            )
            link.start()
            link.run()
            #expect(link.isHealthy)
        }
    }

    @Test(arguments: SRTPProfile.allCases)
    func `both sides export matching keys`(profile: SRTPProfile) throws {
        let link = try Link(clientProfiles: [profile])
        link.start()
        link.run()
        let client = try #require(link.keys(.client))
        let server = try #require(link.keys(.server))
        #expect(link.isHealthy)
        #expect(client.profile == profile)
        #expect(client.local != client.remote)
        #expect(client.local.count == profile.keyLength + profile.saltLength)
        #expect(server.local == client.remote)
        // Without loss there are no retransmissions, and the handshake takes two round trips.
        #expect(link.now == Instant(nanoseconds: 0) + Link.oneWay * 4)
        #expect(link.client.nextDeadline == nil)
        #expect(link.server.nextDeadline == nil)
    }

    @Test(arguments: SRTPProfile.allCases)
    func `the exported keys protect media in both directions`(profile: SRTPProfile) throws {
        let link = try Link(clientProfiles: [profile])
        link.start()
        link.run()
        let client = try LibSRTPTransform(try #require(link.keys(.client)))
        let server = try LibSRTPTransform(try #require(link.keys(.server)))
        let plain: [UInt8] = [0x80, 96, 0, 1, 0, 0, 0, 9, 1, 2, 3, 4] + Array(0..<100)
        for (sender, receiver) in [(client, server), (server, client)] {
            var packet = plain + [UInt8](repeating: 0, count: SRTPLimits.overheadBytesMax)
            let length = try inPlace(&packet) { (span) throws(SRTPError) in
                try sender.protectRTP(&span, length: plain.count)
            }
            #expect(length == plain.count + profile.tagLength)
            let plainLength = try inPlace(&packet) { (span) throws(SRTPError) in
                try receiver.unprotectRTP(&span, length: length)
            }
            #expect(Array(packet.prefix(plainLength)) == plain)
        }
    }

    @Test(arguments: [
        ([SRTPProfile.aes128CMHMACSHA1, .aeadAES256GCM, .aeadAES128GCM], SRTPProfile.aeadAES128GCM),
        ([.aes128CMHMACSHA1, .aeadAES256GCM], .aeadAES256GCM),
        ([.aes128CMHMACSHA1], .aes128CMHMACSHA1),
    ])
    func `the server's order of profiles is preferred`(offered: [SRTPProfile], chosen: SRTPProfile) throws {
        let link = try Link(clientProfiles: offered)
        link.start()
        link.run()
        #expect(link.keys(.server)?.profile == chosen)
        #expect(link.isHealthy)
    }

    @Test func `without a common profile both sides fail and no keys are exported`() throws {
        let link = try Link(clientProfiles: [.aes128CMHMACSHA1], serverProfiles: [.aeadAES128GCM])
        link.start()
        link.run()
        #expect(link.failure(.server) == .noCommonProfile)
        #expect(link.failure(.client) == .handshake)
        #expect(link.keys(.server) == nil && link.keys(.client) == nil)
        #expect(link.now <= Instant(nanoseconds: 0) + DTLSConnection.refusalGrace + .seconds(1))
    }

    @Test func `a server certificate with another fingerprint is refused before keys are exported`() throws {
        let link = try Link(clientExpects: Certificates.unannounced.fingerprint)
        link.start()
        link.run()
        #expect(link.failure(.client) == .fingerprintMismatch)
        #expect(link.failure(.server) == .handshake)
        #expect(link.keys(.server) == nil && link.keys(.client) == nil)
    }

    @Test func `a client certificate with another fingerprint is refused before keys are exported`() throws {
        let link = try Link(serverExpects: Certificates.unannounced.fingerprint)
        link.start()
        link.run()
        #expect(link.failure(.server) == .fingerprintMismatch)
        #expect(link.failure(.client) == .handshake)
        #expect(link.keys(.server) == nil && link.keys(.client) == nil)
    }

    @Test func `one matching fingerprint among several is enough`() throws {
        let wrong = try #require(Fingerprint(algorithm: .sha512, digest: [UInt8](repeating: 7, count: 64)))
        let server = try DTLSConnection(
            certificate: Certificates.server,
            role: .server,
            remoteFingerprints: [wrong, Certificates.client.fingerprint]
        )
        let client = try DTLSConnection(
            certificate: Certificates.client,
            role: .client,
            remoteFingerprints: [Certificates.server.fingerprint, wrong]
        )
        let now = Instant(nanoseconds: 0)
        client.start(at: now)
        var isConnected = (false, false)
        for _ in 0..<10 {
            client.drainOutput { if case .connected = server.receive($0, at: now) { isConnected.0 = true } }
            server.drainOutput { if case .connected = client.receive($0, at: now) { isConnected.1 = true } }
        }
        #expect(isConnected == (true, true))
    }

    @Test func `a connection requires a fingerprint`() {
        #expect(throws: DTLSError.noFingerprint) {
            _ = try DTLSConnection(certificate: Certificates.server, role: .server, remoteFingerprints: [])
        }
    }

    @Test(arguments: [Link.Side.client, .server])
    func `close_notify of either side reaches the other`(closer: Link.Side) throws {
        let link = try Link()
        link.start()
        link.run()
        let other: Link.Side = closer == .client ? .server : .client
        link[closer].close()
        link.run()
        #expect(link.isClosed(other))
        #expect(!link.isClosed(closer))
        #expect(!link[other].isEstablished)
        #expect(!link[closer].isEstablished)
        #expect(link[other].nextDeadline == nil && link[closer].nextDeadline == nil)
    }

    @Test func `a last flight and a close_notify in one datagram connect and then close`() throws {
        let link = try Link()
        var held: [UInt8] = []
        link.fate = { [unowned link] side, _, bytes in
            if side == .server, link.server.isEstablished || !held.isEmpty {
                held += bytes
                return []
            }
            return [Link.Delivery(bytes: bytes, delay: Link.oneWay)]
        }
        link.start()
        link.run(stopWhen: { !held.isEmpty })
        link.server.close()
        link.collect()
        link.inject(held, to: .client)
        link.run()
        #expect(link.keys(.client) != nil)
        #expect(link.isClosed(.client))
        #expect(link.client.nextDeadline == nil)
    }

    @Test func `the handshake fails at the timeout when nothing is delivered`() throws {
        let link = try Link(fate: { _, _, _ in [] })
        link.start()
        link.run()
        #expect(link.failure(.server) == .timedOut)
        #expect(link.failure(.client) == .timedOut)
        #expect(link.now <= Instant(nanoseconds: 0) + DTLSConnection.handshakeTimeout)
        let hellos = link.sent[.client]?.count ?? 0
        #expect((10...14).contains(hellos))
    }

    @Test func `retransmissions back off from 100 ms to 3 s`() throws {
        let link = try Link(fate: { _, _, _ in [] })
        link.start()
        var deadlines: [Int] = []
        for _ in 0..<7 {
            let due = try #require(link.client.nextDeadline)
            deadlines.append((due - Instant(nanoseconds: 0)).milliseconds)
            #expect(link.client.handleTimeout(at: due - .milliseconds(1)) == nil)
            #expect(link.client.handleTimeout(at: due) == nil)
        }
        #expect(deadlines == [100, 300, 700, 1_500, 3_100, 6_100, 9_100])
        var count = 0
        link.client.drainOutput { _ in count += 1 }
        #expect(count == 7)
    }

    @Test(arguments: [0, 256, 300, 500, 1200, 1500, 9000])
    func `no datagram exceeds the MTU`(mtuBytes: Int) throws {
        let link = try Link(mtuBytes: mtuBytes)
        link.start()
        link.run()
        #expect(link.isHealthy)
        let bound = min(max(mtuBytes, DTLSConnection.mtuRange.lowerBound), DTLSConnection.mtuRange.upperBound)
        let longest = link.sent.values.flatMap { $0 }.map(\.count).max() ?? 0
        #expect(longest <= bound)
        if mtuBytes == 256 { #expect((link.sent[.server]?.count ?? 0) > 3) }
    }

    @Test func `certificates have different fingerprints`() throws {
        #expect(Certificates.client.fingerprint != Certificates.server.fingerprint)
        #expect(Certificates.client.fingerprint.algorithm == .sha256)
        #expect(Certificates.client.fingerprint.digest.count == 32)
    }
}

/// Lends an array's bytes to `body` as a mutable span.
func inPlace<Failure: Error>(
    _ packet: inout [UInt8],
    _ body: (inout MutableRawSpan) throws(Failure) -> Int
) throws(Failure) -> Int {
    var elements = packet.mutableSpan
    var span = unsafe elements.mutableBytes
    return try body(&span)
}
