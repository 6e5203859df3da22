import Base
import ChannelTypes
import Cluster
import Foundation
import Logging
import Media
import Operators
import Room
import ToolCommands
import Web

/// Reads the node's settings and their files again while it runs, and puts the reloadable ones in force.
///
/// A reload puts everything in force or, when a setting or a file is unusable, nothing.
actor Reload {
    /// What a reload changes.
    struct Parts: Sendable {
        let services: ControlServices
        let directory: ChannelDirectory
        /// `nil` for a node on its own.
        let cluster: ClusterNode?
        /// That of TURN over TLS; `nil` without.
        let tlsAcceptor: TLSAcceptor?
        /// Of the log.
        let threshold: Replaceable<Logger.Level>
    }

    private let source: SettingSource
    private let parts: Parts
    private let logger: Logger
    /// As they are in force.
    private var configuration: NodeConfiguration
    private var snapshot: SettingSnapshot
    /// The reload that began last.
    private var last: Task<Result<ReloadReport, ReloadFailure>, Never>?

    /// - Parameters:
    ///   - settings: those that the node started with.
    ///   - source: where they are read again.
    /// - Throws: when a file of the settings cannot be read.
    init(
        _ settings: LoadedSettings,
        source: SettingSource,
        parts: Parts,
        logger: Logger
    ) throws(CommandError) {
        configuration = settings.configuration
        snapshot = try SettingSnapshot(settings.reader)
        self.source = source
        self.parts = parts
        self.logger = logger
    }

    /// Reloads and logs the result. Reloads take place one after the other, so that what was read last is in force.
    @discardableResult
    func perform() async throws(ReloadFailure) -> ReloadReport {
        let previous = last
        let task = Task { () -> Result<ReloadReport, ReloadFailure> in
            _ = await previous?.value
            return await reload()
        }
        last = task
        return try await task.value.get()
    }

    private func reload() async -> Result<ReloadReport, ReloadFailure> {
        let report: ReloadReport
        do throws(CommandError) {
            report = try await renew()
        } catch {
            let message =
                "\(error.message) Nothing has changed: correct that and reload again, with SIGHUP, nagare reload or "
                + "POST /v1/reload."
            logger.error("\(message)")
            return .failure(ReloadFailure(message: message))
        }
        logger.notice(
            "reloaded the settings",
            metadata: [
                "changed": "\(report.changed.joined(separator: " "))",
                "needs_restart": "\(report.needsRestart.joined(separator: " "))",
            ]
        )
        for (listener, facts) in [("http", report.certificate), ("admin", report.adminCertificate)] {
            guard let facts else { continue }
            let expiry = Date(timeIntervalSince1970: Double(facts.expiresAt)).formatted(.iso8601)
            logger.info(
                "reloaded the certificate",
                metadata: ["listener": "\(listener)", "serial": "\(facts.serial)", "expires": "\(expiry)"]
            )
        }
        return .success(report)
    }

    private func renew() async throws(CommandError) -> ReloadReport {
        let settings = try source.read()
        let fresh = settings.configuration
        var access = try NodeAccess(fresh, logger: logger)
        try await parts.services.addKeySet(to: &access, of: fresh, configuration)
        let read = try SettingSnapshot(settings.reader)
        // The last step that can fail. It changes nothing then.
        if let renewed = try parts.services.certificates.renew(fresh) {
            await parts.tlsAcceptor?.renew(renewed)
        }
        await parts.services.change(to: fresh, access)
        parts.directory.setLimits(fresh.limits.rooms)
        await parts.cluster?.setAcceptsUnsignedRecords(fresh.cluster?.acceptsUnsignedRecords ?? false)
        parts.threshold.current = fresh.logLevel
        for warning in fresh.warnings where !configuration.warnings.contains(warning) { logger.warning("\(warning)") }
        return note(fresh, read)
    }

    /// Notes what is in force now.
    private func note(_ fresh: NodeConfiguration, _ read: SettingSnapshot) -> ReloadReport {
        var report = ReloadReport(
            certificate: parts.services.certificates.https?.facts,
            adminCertificate: parts.services.certificates.admin?.facts
        )
        for setting in read.changes(since: snapshot) {
            guard isReloadable(setting, fresh) else {
                report.needsRestart.append(setting.rawValue)
                continue
            }
            snapshot.take(setting, from: read)
            guard setting != .limit else { continue }
            report.changed.append(setting.rawValue)
        }
        for limit in Limit.all {
            let value = limit.value(fresh.limits)
            guard value != limit.value(configuration.limits) else { continue }
            var changed = configuration.limits
            changed.rooms = fresh.limits.rooms
            let name = "\(Setting.limit.rawValue) \(limit.name)"
            if limit.value(changed) == value { report.changed.append(name) } else { report.needsRestart.append(name) }
        }
        configuration.keySet = fresh.keySet
        configuration.limits.rooms = fresh.limits.rooms
        configuration.warnings = fresh.warnings
        return report
    }

    /// A node without HTTPS cannot begin it, nor the other way round.
    private func isReloadable(_ setting: Setting, _ fresh: NodeConfiguration) -> Bool {
        switch setting {
        case .tlsCertificate, .tlsKey: parts.services.certificates.https != nil && fresh.tls != nil
        case .adminTLSCertificate, .adminTLSKey: parts.services.certificates.admin != nil && fresh.adminTLS != nil
        default: setting.isReloadable
        }
    }
}
