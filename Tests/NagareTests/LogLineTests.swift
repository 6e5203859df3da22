import Base
import ChannelTypes
import Foundation
import JSON
import Logging
import Synchronization
import Testing

@testable import NodeLog

struct LogLineTests {
    private func line(_ message: String, _ metadata: Logger.Metadata = [:]) -> LogLine {
        LogLine(
            time: Date(timeIntervalSince1970: 1_700_000_000.25),
            level: .notice,
            label: "nagare",
            message: message,
            metadata: metadata
        )
    }

    @Test func `a text line has time, level, message and sorted fields`() {
        let text = line("peer connected", ["peer": "3f", "channel": "demo"]).text(.text)
        #expect(text == "2023-11-14T22:13:20.250Z notice nagare: peer connected channel=demo peer=3f")
    }

    @Test(arguments: [
        ("plain", "plain"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/"),
        ("流れ", "流れ"),
        ("", #""""#),
        ("two words", #""two words""#),
        ("a=b", #""a=b""#),
        (#"say "no""#, #""say \"no\"""#),
        (#"C:\"#, #""C:\\""#),
        ("a\nb\r\tc", #""a\nb\r\tc""#),
        ("\u{1B}[31mred", #""\u001b[31mred""#),
        ("\u{9B}31m", #""\u009b31m""#),
        ("\u{202E}txt.exe", #""\u202etxt.exe""#),
        ("a\u{2028}b", #""a\u2028b""#),
        ("\u{E0001}", #""\udb40\udc01""#),
    ])
    func `a value that could be mistaken is quoted`(value: String, written: String) {
        #expect(line("m", ["v": "\(value)"]).text(.text).hasSuffix(" nagare: m v=\(written)"))
    }

    @Test func `a message cannot look like fields or another line`() {
        let text = line("left reason=none\n2023-11-14T22:13:21Z info nagare: forged").text(.text)
        #expect(text.hasSuffix(#"nagare: "left reason=none\n2023-11-14T22:13:21Z info nagare: forged""#))
        #expect(line("m", ["a b": "1", "x\n": "2"]).text(.text).hasSuffix(#" nagare: m "a b"=1 "x\n"=2"#))
    }

    @Test func `a JSON line parses to what was logged`() throws {
        let metadata: Logger.Metadata = [
            "name": "a \"b\"\n\u{1B}", "count": .stringConvertible(7), "ports": ["1", "2"], "peer": ["id": "3f"],
            "level": "mine",
        ]
        let text = line("peer left", metadata).text(.json)
        #expect(text.hasPrefix(#"{"time":"2023-11-14T22:13:20.250Z","level":"notice","logger":"nagare","#))
        #expect(!text.contains("\n"))
        let expected: JSONValue = .object([
            "time": .string("2023-11-14T22:13:20.250Z"), "level": .string("notice"), "logger": .string("nagare"),
            "message": .string("peer left"), "name": .string("a \"b\"\n\u{1B}"), "count": .string("7"),
            "ports": .array([.string("1"), .string("2")]), "peer": .object(["id": .string("3f")]),
            "level_": .string("mine"),
        ])
        #expect(try JSONValue(parsing: text) == expected)
    }

    @Test func `fields of a logger and of an entry stand in one line, the entry's first`() {
        let lines = Mutex<[String]>([])
        var logger = Logger(label: "nagare") { label in
            NodeLogHandler(label: label, threshold: Replaceable(Logger.Level.info), format: .text) { line in
                lines.withLock { $0.append(line) }
            }
        }
        logger[metadataKey: "channel"] = "one"
        logger[metadataKey: "peer"] = "3f"
        logger.info("first", metadata: ["channel": "two"])
        logger.debug("not at this level")
        let written = lines.withLock { $0 }
        #expect(written.count == 1)
        #expect(written.first?.hasSuffix(" info nagare: first channel=two peer=3f") == true)
    }

    @Test func `a change of the threshold holds for all loggers, down to their own floors`() {
        let threshold = Replaceable(Logger.Level.info)
        let lines = Mutex<[String]>([])
        let logger = { (label: String, floor: Logger.Level) in
            Logger(label: label) { label in
                NodeLogHandler(label: label, threshold: threshold, floor: floor, format: .text) { line in
                    lines.withLock { $0.append(line) }
                }
            }
        }
        let (node, http) = (logger("nagare", .trace), logger("nagare.http", .notice))
        node.debug("hidden")
        http.info("hidden")
        threshold.current = .debug
        node.debug("first")
        http.info("hidden")
        threshold.current = .error
        node.warning("hidden")
        http.notice("hidden")
        http.error("second")
        #expect(lines.withLock { $0.map { $0.suffix(6) } } == [" first", "second"])
    }
}
