import JSON
import Testing

@testable import Recording

struct RecordingRequestTests {
    private func read(_ text: String) throws -> RecordingRequest {
        try RecordingRequest(try JSONFields(try JSONValue(parsing: text, limits: .unauthenticated)))
    }

    @Test func `a request is read`() throws {
        let request = try read(
            #"{"channel_id": "a", "expire_time": 60, "split_duration": 10, "split_only": true, "format": "webm", "metadata": {"a": 1}}"#
        )
        #expect(request.expireSeconds == 60 && request.splitSeconds == 10 && request.splitOnly)
        #expect(request.format == .webm && request.metadata == .object(["a": .integer(1)]))
        #expect(try read("{}") == RecordingRequest())
        #expect(try read(#"{"metadata": null, "expire_time": null}"#) == RecordingRequest())
    }

    @Test(
        arguments: [
            (#"{"expire_time": 0}"#, "\"expire_time\" has to be a whole number from 1 to 86400."),
            (#"{"split_duration": 86401}"#, "\"split_duration\" has to be a whole number from 1 to 86400."),
            (#"{"split_only": true}"#, "\"split_only\" needs \"split_duration\": the seconds of each part."),
            (#"{"split_only": 1}"#, "\"split_only\" has to be true or false."),
            (#"{"format": "mkv"}"#, "\"format\" has to be one of \"mp4\", \"webm\"."),
        ]
    )
    func `a wrong request says what is wrong`(text: String, message: String) {
        do {
            _ = try read(text)
            Issue.record("\(text) is refused")
        } catch {
            #expect((error as? JSONShapeError)?.message == message)
        }
    }

    @Test func `metadata are bounded`() throws {
        let fields = JSONFields(["metadata": .string(String(repeating: "a", count: 20_000))])
        #expect(throws: JSONShapeError.self) { try RecordingRequest(fields) }
    }

    @Test func `failures say what to do`() {
        let failures: [(RecordingFailure, Int, String)] = [
            (.sessionMissing, 404, "SESSION-NOT-FOUND"), (.exists, 409, "RECORDING-EXISTS"),
            (.disabled, 409, "RECORDING-DISABLED"), (.diskFull, 507, "DISK-FULL"), (.full, 503, "RECORDINGS-FULL"),
        ]
        for (failure, status, reason) in failures {
            #expect(failure.status == status && failure.reason == reason && failure.message.contains(":"))
        }
    }
}

struct RecordingLayoutTests {
    @Test func `files are named as Sora's uploader and Hisui look for them`() throws {
        let layout = try #require(RecordingLayout(recordingID: "R1"))
        let archive = try #require(layout.archive("C_2"))
        #expect(archive.medium(.webm) == "archive-C_2.webm" && archive.metadata == "archive-C_2.json")
        #expect(archive.temporary(.mp4) == "archive-C_2.mp4.part")
        #expect(layout.archive("C_2", number: 2)?.metadata == "archive-C_2-2.json")
        #expect(layout.split("C", index: 1)?.medium(.mp4) == "split-archive-C_0001.mp4")
        #expect(layout.split("C", index: 12_345)?.metadata == "split-archive-C_12345.json")
        #expect(layout.splitEnd("C") == "split-archive-end-C.json")
        #expect(layout.reportName == "report-R1.json")
    }

    @Test(arguments: ["", ".", "..", "a/b", "a\\b", "a.b", "a b", "é", "a\u{0}", String(repeating: "a", count: 129)])
    func `no identifier leaves its folder`(text: String) throws {
        #expect(!RecordingLayout.isIdentifier(text))
        #expect(RecordingLayout(recordingID: text) == nil)
        let layout = try #require(RecordingLayout(recordingID: "R"))
        #expect(layout.archive(text) == nil && layout.split(text, index: 1) == nil && layout.splitEnd(text) == nil)
    }
}
