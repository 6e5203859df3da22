import ArgumentParser
import Foundation
import ToolCommands

/// The program `nagare`.
@main
struct NagareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nagare",
        abstract: "A WebRTC SFU: it forwards media between browsers and other WebRTC clients.",
        version: "nagare \(BuildInformation.version)",
        subcommands: [
            ServeCommand.self, LoadCommand.self, ImpairCommand.self, TokenCommand.self, SettingsCommand.self,
            LimitsCommand.self, ChannelsCommand.self, MembersCommand.self, KickCommand.self, BanCommand.self,
            UnbanCommand.self, BlockCommand.self, UnblockCommand.self, RoleCommand.self, MuteCommand.self,
            SubscriptionsCommand.self, SubscribeCommand.self, TerminateCommand.self, CallsCommand.self,
            DrainCommand.self, UndrainCommand.self, ReloadCommand.self,
        ]
    )

    /// Prints an error as one sentence. The library's own `main` adds the usage to each.
    static func main() async {
        do {
            var command = try parseAsRoot(joiningNegativeNumbers(Array(CommandLine.arguments.dropFirst())))
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch let error as CommandError {
            fail(error.message, status: error.exitStatus)
        } catch let error as OperatorFailure {
            fail(error.message, status: error.exitStatus)
        } catch {
            // Help and version come as errors with status 0 and go to standard output.
            if exitCode(for: error) == .success { exit(withError: error) }
            fail(oneLine(message(for: error)), status: exitCode(for: error).rawValue)
        }
    }

    /// Makes `--flag=-1` of `--flag -1`, and `--flag=-5m` of `--flag -5m`, which the library reads as a flag without a value.
    /// The option itself then says which numbers or times it accepts.
    static func joiningNegativeNumbers(_ arguments: [String]) -> [String] {
        var joined: [String] = []
        for argument in arguments {
            let isNegative = argument.hasPrefix("-") && (Double(argument) != nil || isNegativeAmount(argument))
            if isNegative, let flag = joined.last, flag.hasPrefix("--"), !flag.contains("="), flag.count > 2 {
                joined[joined.count - 1] = "\(flag)=\(argument)"
            } else {
                joined.append(argument)
            }
        }
        return joined
    }

    /// Whether it is a minus sign, a digit, and what else numbers, times and rates have: `-5m`, `-1.5M`, `-300ms`.
    private static func isNegativeAmount(_ argument: String) -> Bool {
        let amount = argument.dropFirst()
        return amount.first?.isNumber == true && amount.allSatisfy { $0.isLetter || $0.isNumber || $0 == "." }
    }

    private static func fail(_ message: String, status: Int32) -> Never {
        FileHandle.standardError.write(Data("nagare: \(message)\n".utf8))
        Foundation.exit(status)
    }

    private static func oneLine(_ text: String) -> String {
        let line = text.split(whereSeparator: \.isNewline).joined(separator: " ")
        return line.hasSuffix(".") || line.hasSuffix("?") ? line : "\(line)."
    }
}
