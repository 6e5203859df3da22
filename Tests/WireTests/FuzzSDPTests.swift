import Testing
import Wire

/// What fuzzing found in session descriptions.
@Suite struct FuzzSDPTests {
    @Test(arguments: ["96 ==1", "96 =a=b", "96 a=1;=b=2", "96  = x=y;c=3"])
    func `a format parameter whose key is empty is left out, so that the line reads the same again`(text: String) throws
    {
        let line = try #require(FormatParametersAttribute(text))
        #expect(line.parameters.allSatisfy { !$0.key.isEmpty })
        #expect(FormatParametersAttribute(line.text) == line)
    }
}
