import DTLS
import EventLoop
import Logging
import Media
import MediaTypes
import SRTP
import TLS
import TURN
import ToolCommands
import Wire

extension Node {
    /// Starts the media loops. When one fails, none is left running.
    /// - Parameter turnCertificate: of TURN over TLS; `nil` without.
    func startLoops(
        _ turnCertificate: TLSCertificate?,
        of incarnation: NodeIncarnation
    ) async throws(CommandError) -> MediaLoops {
        let certificate: DTLSCertificate
        do {
            certificate = try DTLSCertificate.generate()
        } catch {
            throw .system("No certificate for media could be made: \(error).")
        }
        let tcp = TCPAdmission(configuration.limits.tcp)
        let turn = configuration.turnSettings()
        let acceptor = try await startTLSAcceptor(turnCertificate, tcp)
        var loops: [MediaLoop] = []
        for index in 0..<configuration.loops {
            do throws(EventLoopError) {
                loops.append(
                    try await MediaLoop.start(
                        MediaLoopConfiguration(
                            name: "media-\(index)",
                            certificate: certificate,
                            location: MediaLocation(node: incarnation, loop: LoopIndex(rawValue: UInt16(index))),
                            socketOptions: configuration.socketOptions,
                            srtpBackend: configuration.srtpBackend,
                            sendRate: configuration.sendRate,
                            pausesUnusedLayers: configuration.pausesUnusedLayers,
                            candidates: configuration.candidates(bound:),
                            turn: turn,
                            turnTLS: turnTLS(loop: index, acceptor),
                            tcp: configuration.usesICETCP ? tcp : nil
                        ),
                        listeningOn: configuration.mediaAddresses(loop: index)
                    )
                )
            } catch {
                await acceptor?.shutdown()
                for loop in loops { await loop.shutdown() }
                throw .system(error.message)
            }
        }
        let shortfalls = await loops.first?.sockets.first?.shortfalls ?? []
        for shortfall in shortfalls { logger.warning("\(shortfall.message)") }
        for loop in loops {
            for failure in await loop.tcpFailures {
                logger.warning(
                    "\(failure.message) Until then, clients whose network blocks UDP cannot connect there; --ice-tcp off ends this warning."
                )
            }
        }
        return await MediaLoops(linking: loops, tlsAcceptor: acceptor)
    }

    /// `nil` without TURN over TLS.
    private func startTLSAcceptor(
        _ certificate: TLSCertificate?,
        _ admission: TCPAdmission
    ) async throws(CommandError) -> TLSAcceptor? {
        guard let certificate else { return nil }
        do throws(EventLoopError) {
            return try await TLSAcceptor.start(certificate, admission)
        } catch {
            throw .system(error.message)
        }
    }

    private func turnTLS(loop: Int, _ acceptor: TLSAcceptor?) -> TURNTLSSettings? {
        guard let acceptor, let listener = configuration.turnTLS else { return nil }
        return TURNTLSSettings(
            acceptor: acceptor,
            port: configuration.sharesHTTPSPort ? listener.port : configuration.turnTLSPorts[loop],
            isShared: configuration.sharesHTTPSPort,
            name: listener.name
        )
    }

    func logCandidates(_ loops: MediaLoops) {
        for loop in loops.loops {
            let transport = loop.transport
            let candidates = transport.candidates.map(\.description)
            let tcpCandidates = transport.tcpCandidates.map(\.description)
            logger.info(
                "media",
                metadata: [
                    "loop": "\(loop.location.loop.rawValue)",
                    "candidates": "\(candidates.joined(separator: " "))",
                    "tcp": "\(tcpCandidates.joined(separator: " "))",
                ]
            )
        }
    }
}
