/// Test keys in PEM. Those named after an RFC are its examples.
enum KeyVectors {
    /// RFC 7515 A.3.
    static let rfc7515ES256PKCS8 = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjpsQnnGQmL+YBIff
        H1136cspYG6+0iY7X1fCE9+E9LKhRANCAAR/zc4ncPbEXUGDy+5v20t7WAczNXvp
        7xO6z248e9FURcfxRM0bvZt+hyzf7bnuufSzaV1uqQskrYpGIyiFiOWt
        -----END PRIVATE KEY-----
        """
    static let rfc7515ES256SEC1 = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEII6bEJ5xkJi/mASH3x9dd+nLKWBuvtImO19XwhPfhPSyoAoGCCqGSM49
        AwEHoUQDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEXH8UTNG72b
        focs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
        -----END EC PRIVATE KEY-----
        """
    static let rfc7515ES256Public = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
        6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
        -----END PUBLIC KEY-----
        """
    /// RFC 8037 A.1.
    static let rfc8037Private = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
        -----END PRIVATE KEY-----
        """
    static let rfc8037Public = """
        -----BEGIN PUBLIC KEY-----
        MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
        -----END PUBLIC KEY-----
        """
    /// The public half belongs to another private key.
    static let mismatchedHalves = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEII6bEJ5xkJi/mASH3x9dd+nLKWBuvtImO19XwhPfhPSzoAoGCCqGSM49
        AwEHoUQDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEXH8UTNG72b
        focs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
        -----END EC PRIVATE KEY-----
        """
    /// The point is not on P-256.
    static let offCurve = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
        6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrA==
        -----END PUBLIC KEY-----
        """
    static let p384 = """
        -----BEGIN PUBLIC KEY-----
        MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAECxh8DtGkPFWD8+GO5LxEe5fPJuE7zMt9
        ilHdsfBQjyaYiweTpt/bivoZSdJdrCSDBsUsiHCo5hA0xzh0uoZz/uwPcsX+aqdW
        b4S+1E+Be0q1VDugIsahqDTtLf2hSNfN
        -----END PUBLIC KEY-----
        """
    static let secp256k1 = """
        -----BEGIN PUBLIC KEY-----
        MFYwEAYHKoZIzj0CAQYFK4EEAAoDQgAEJUXbvReOxbdizSGD9VVlD2L55G54ST0+
        lZYxIgkRyWXmJGgRiLMFE2lUNuQCJwpzCQ7r7R5ajVthfdUul45Agw==
        -----END PUBLIC KEY-----
        """
    static let ed448 = """
        -----BEGIN PUBLIC KEY-----
        MEMwBQYDK2VxAzoAbbpecrDhdVSORFpknpGTfqAzb1aCuUUdg1LMBdcLrP/8FO+r
        9YgSOkXuFU9YmLdtP8VHY4wIpE6A
        -----END PUBLIC KEY-----
        """
    static let x25519 = """
        -----BEGIN PUBLIC KEY-----
        MCowBQYDK2VuAyEAwNxq5Tu3dppZ3KPO/heLQxL4/XxEO+aJhKb5L0q1Vis=
        -----END PUBLIC KEY-----
        """
    static let rsa = """
        -----BEGIN PUBLIC KEY-----
        MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCs/V3r9a1CWlryU6RsAfo2BM3X
        uuk82wII6Bg5tq8Jtd+946mBZuRd4gnkmtCu7cvXnvFO9nPXRcCCxFi3gMIlMpRW
        EhmX09zPMn7jr+rbxXre2d6CQrhCwETs/jfzeUHmYzI6IsQAUXJiDW3jgJhu1i7I
        NiH+h7KAfXtvRR+3+wIDAQAB
        -----END PUBLIC KEY-----
        """
    /// Encrypted with the password "secret".
    static let encrypted = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhjtQc1rAo3QgICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEECSfWVdwCNFE+Mcw08md328EgZAl
        rJ860oNR0FpMlGGhTmP4d4RSR74piyVZal6PJ/TQmknqHJ/LB3xjKCnm+rlYv4gW
        ToxFcxRUBXne6tKRuWL/cqhBwjCLTHANr/Kys/cT5a9iuiSOGR8M0jXkH9kfx/Nj
        PLDJ4yn3T/g1GqNMlMsTNL4Djj5I6PSvLXpcvmSbV8EBxajV+2zLMormp6seIOQ=
        -----END ENCRYPTED PRIVATE KEY-----
        """
    /// `openssl ecparam -genkey` writes the curve parameters first.
    static let withParameters = """
        -----BEGIN EC PARAMETERS-----
        BggqhkjOPQMBBw==
        -----END EC PARAMETERS-----
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIDW2Z2L69Hm7l48ippW/RYBE68dr1POtyZfA5HsHa5tZoAoGCCqGSM49
        AwEHoUQDQgAEmnxQ0WIBbRiqrR3GeJN2YRQOa19QxyIGIKdBl7DJI18wX5bT0Dey
        0pWqwFX0jOYaoReB3ZhR1wYSFyU/yjtl0g==
        -----END EC PRIVATE KEY-----
        """
    /// RFC 7515 A.2.
    static let rfc7515RS256Public = """
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAofgWCuLjybRlzo0tZWJj
        NiuSfb4p4fAkd/wWJcyQoTbji9k0l8W26mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEz
        P1Pt0Bm4d4QlL+yRT+SFd2lZS+pCgNMsD1W/YpRPEwOWvG6b32690r2jZ47soMZo
        9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5z5rexMdbBYUsLA9e+KXBdQOS+UTo7WTB
        EMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6/I5IhlJH7aGhyxX
        FvUK+DWNmoudF8NAco9/h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXp
        oQIDAQAB
        -----END PUBLIC KEY-----
        """
    static let rfc7515RS256Modulus =
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt"
        + "0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSX"
        + "ndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5"
        + "IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
    static let rfc7515RS256Signature =
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W"
        + "2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkS"
        + "jtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnv"
        + "Wh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
}
