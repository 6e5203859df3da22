/// Keys of no other use, and tokens that another implementation made with them. All say the same: channel `lobby`, role
/// `sendrecv`, valid from 10⁹ to 2·10⁹ seconds after 1970.
enum TokenVectors {
    static let secret = "correct horse battery staple, twice over"
    static let es256Private = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOS0aJLeSTp7iErpc
        nsYrwwn6FRVV3vSaYzFid2PFjSqhRANCAATJNpK6NH4nodxG9TOwJhn3ymtshYUb
        TEPYbGRreiX1jfBiAnj4RyoKXMttqsCIqRbpyImU3sR90YvALZf/+QzS
        -----END PRIVATE KEY-----
        """
    static let es256SEC1 = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIDktGiS3kk6e4hK6XJ7GK8MJ+hUVVd70mmMxYndjxY0qoAoGCCqGSM49
        AwEHoUQDQgAEyTaSujR+J6HcRvUzsCYZ98prbIWFG0xD2Gxka3ol9Y3wYgJ4+Ecq
        ClzLbarAiKkW6ciJlN7EfdGLwC2X//kM0g==
        -----END EC PRIVATE KEY-----
        """
    static let es256Public = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyTaSujR+J6HcRvUzsCYZ98prbIWF
        G0xD2Gxka3ol9Y3wYgJ4+EcqClzLbarAiKkW6ciJlN7EfdGLwC2X//kM0g==
        -----END PUBLIC KEY-----
        """
    static let edDSAPrivate = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIIF6hIXagPJFLpSBmuffFzai9BiJbXQjAwVFYBRhteCs
        -----END PRIVATE KEY-----
        """
    static let edDSAPublic = """
        -----BEGIN PUBLIC KEY-----
        MCowBQYDK2VwAyEA3HhX4RwvKJB74UDDiaSnPow7Q693Hq2Np97NIgYfcus=
        -----END PUBLIC KEY-----
        """
    static let hs256Token =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJjaGFubmVsX2lkIjoibG9iYnkiLCJyb2xlIjoic2VuZHJlY3Y"
        + "iLCJleHAiOjIwMDAwMDAwMDAsIm5iZiI6MTAwMDAwMDAwMCwianRpIjoidC0xIiwic3ViIjoidXNlci03Iiwic2l"
        + "tdWxjYXN0Ijp0cnVlLCJjb25uZWN0aW9uX2xpZmV0aW1lIjo2MDAsIm1heF9jaGFubmVsX2Nvbm5lY3Rpb25zIjo"
        + "zfQ.tTkYxg4otnSQ84YtuU_fDnHF_wy65gBUsojYw-IZbGw"
    static let es256Token =
        "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIiwidHlwIjoiSldUIn0.eyJjaGFubmVsX2lkIjoibG9iYnkiLCJyb2xl"
        + "Ijoic2VuZHJlY3YiLCJleHAiOjIwMDAwMDAwMDAsIm5iZiI6MTAwMDAwMDAwMCwianRpIjoidC0xIiwic3ViIjoi"
        + "dXNlci03Iiwic2ltdWxjYXN0Ijp0cnVlLCJjb25uZWN0aW9uX2xpZmV0aW1lIjo2MDAsIm1heF9jaGFubmVsX2Nv"
        + "bm5lY3Rpb25zIjozfQ.Vf7-Kr9Dw14OjOLM5XQUykg4OCIm6Pijk2aGQna3KtNcwQ2b2UNhbc0pK2ZzwZdbY0RJp"
        + "-SPf9TRWICtmEVlbg"
    static let edDSAToken =
        "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJjaGFubmVsX2lkIjoibG9iYnkiLCJyb2xlIjoic2VuZHJlY3Y"
        + "iLCJleHAiOjIwMDAwMDAwMDAsIm5iZiI6MTAwMDAwMDAwMCwianRpIjoidC0xIiwic3ViIjoidXNlci03Iiwic2l"
        + "tdWxjYXN0Ijp0cnVlLCJjb25uZWN0aW9uX2xpZmV0aW1lIjo2MDAsIm1heF9jaGFubmVsX2Nvbm5lY3Rpb25zIjo"
        + "zfQ.15bfEcYFHCeRdtmmcz9PXUy9iFAGCUPpWBwutuPNuWs6iFKMrBP4Hf7EyUda4dyGyeeLbSHjbbkJa9wGQGjG"
        + "CA"
    static let rs256Public = """
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtZPgxIgcH860SoCcHpGI
        EY24MFm+9YC1P+yW5L0mdbR+PMzeDgfi753KTVCJK5FUBFfyE2eyGiVbSPM79D5Z
        A5ErLUgw1TC2kLkOSb6KrEhuZKFCQoVQBmy29Ihyntg7uNvWcOnjMuMvBbfXaUnS
        v/cIn0k/RjPGbDrvOYAIvz3MgJXVOQMx7MLQHC0kNlnC6HG6E45YHlmagA+ENat8
        GfH6L+nTZaGFcf/sQOFFvst/yfauzbiymsq+xJ87SMWa9N5nMc74G7QMYlkqYAeg
        CSp4+J0Tl3OAXyY9T8Jp/0lwgMORb0DgFZnwdx35RA+RpaejWl0XkdquZckJxqoZ
        XQIDAQAB
        -----END PUBLIC KEY-----
        """
    /// Of 1024 bits.
    static let rs256Short = """
        -----BEGIN RSA PRIVATE KEY-----
        MIICXAIBAAKBgQCus18A9YwcorXw5mKvCWuaR7O9DhT+fCPehDeZWprbJohqHlRs
        IrTUMigtA6Da2QVoQX4Ia1sQ/AQHW7QOzauHtNmQbDgf9EEr6XzPbpZLSCyaWW3q
        j9gBhKzwk8L2hAyiDZwMn8K9KV3nT3CQXJ/YCAFeZ5ZrtxD2pdl7OwjY2QIDAQAB
        AoGAFJLfL1e7hmvLDXG0UXTEjUjAbBVKd6Xa+4uKmK7I6eIh0o1717hGn27AuHxi
        5yMDtgFwfEFYWimzt8Ie9FdYSdMrICrot6/xrOd5WT59STa3JAFytKx0yP8l7ycF
        ZCUg0qNZAW7BI5R6jOtY2vJlUHWNG9uDEB7z1toTyL/SprkCQQDe+WlEVyaJqgi1
        30jVJSpi++5vERhuRJcVc2TGAgHswkC5ZqPXOY1l0lKbVvd4KoYKxgUUvhfkM/rK
        2QQNJajHAkEAyJON2LUrz8cScjr9SMG9Uj0eh1yvIdvxGovLuOfKg+M7T7WdmMDV
        W3S2zgu5Bmo2oQkmfN+BEOQWqLI5oVYRXwJAftKlyTU4ujx4T9n8dx94iGx7Jbk3
        iCCDPrQvsWAa8Ctc3RdAQX5+qleCnNBOWY72RtJyuWWV+TqHfzEIWOH+qQJAUvCR
        Czd/cl/DRPEXo2pZuxQC975fvQSR4oRELaXLnFXuRLu4+11h3HuazAEU9Y4eIOED
        xUc2u6FVrVRleE16yQJBALFzERuVE9Yys9vU2TBRHxOWqgU0Rh/60AbDQydO8FJa
        Qc5k4TJATrVEji0J1Q30+Ybw59eTutlCTaHzWdPqk40=
        -----END RSA PRIVATE KEY-----
        """
    static let rs256Token =
        "eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIiwidHlwIjoiSldUIn0.eyJjaGFubmVsX2lkIjoibG9iYnkiLCJyb2xl"
        + "Ijoic2VuZHJlY3YiLCJleHAiOjIwMDAwMDAwMDAsIm5iZiI6MTAwMDAwMDAwMCwianRpIjoidC0xIiwic3ViIjoi"
        + "dXNlci03Iiwic2ltdWxjYXN0Ijp0cnVlLCJjb25uZWN0aW9uX2xpZmV0aW1lIjo2MDAsIm1heF9jaGFubmVsX2Nv"
        + "bm5lY3Rpb25zIjozfQ.SRAEu543eJHc8VWQvllknnN8MWTOxhhaevpxgaOkBiAeyPj6ho_M-7XYPEUf3v3x5IXh3"
        + "NsPhoEFgtU3wSiVNP1Yu3nUot8RdIlT53hu0jtlCDpgOQSpHa7LmfNtVPjnHPrWIti1ACHQuq92rZ-fZbFRLw14p"
        + "dk7OnjiKfKE0zOLnPprK4kjwVz1HRs0P7mUsWPSq2sBZudcARRxDzBmqMWv_7CmDvXMkNsl8ZtNRahc7vkxUyFy3"
        + "3eUl-ClKH1UYoGUUNXDcpPgD3PjspzJ4NDUutGFy35mMBYhMQz1NmIeuo3cwUhBoWcd5pnKOwjuT7yXoyQX_C2jC"
        + "Fexg9BxnA"
    /// The numbers of the public keys above (RFC 7518 §6).
    static let rs256Modulus =
        "tZPgxIgcH860SoCcHpGIEY24MFm-9YC1P-yW5L0mdbR-PMzeDgfi753KTVCJK5FUBFfyE2eyGiVbSPM79D5ZA5Er"
        + "LUgw1TC2kLkOSb6KrEhuZKFCQoVQBmy29Ihyntg7uNvWcOnjMuMvBbfXaUnSv_cIn0k_RjPGbDrvOYAIvz3MgJXV"
        + "OQMx7MLQHC0kNlnC6HG6E45YHlmagA-ENat8GfH6L-nTZaGFcf_sQOFFvst_yfauzbiymsq-xJ87SMWa9N5nMc74"
        + "G7QMYlkqYAegCSp4-J0Tl3OAXyY9T8Jp_0lwgMORb0DgFZnwdx35RA-RpaejWl0XkdquZckJxqoZXQ"
    static let shortModulus =
        "rrNfAPWMHKK18OZirwlrmkezvQ4U_nwj3oQ3mVqa2yaIah5UbCK01DIoLQOg2tkFaEF-CGtbEPwEB1u0Ds2rh7TZ"
        + "kGw4H_RBK-l8z26WS0gsmllt6o_YAYSs8JPC9oQMog2cDJ_CvSld509wkFyf2AgBXmeWa7cQ9qXZezsI2Nk"
    static let es256X = "yTaSujR-J6HcRvUzsCYZ98prbIWFG0xD2Gxka3ol9Y0"
    static let es256Y = "8GICePhHKgpcy22qwIipFunIiZTexH3Ri8Atl__5DNI"
    static let edDSAX = "3HhX4RwvKJB74UDDiaSnPow7Q693Hq2Np97NIgYfcus"
}
