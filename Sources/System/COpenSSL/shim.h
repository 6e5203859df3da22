#pragma once
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/time.h>

// Swift does not see function-like macros; these give them a name.

static inline void nagare_SSL_CTX_require_dtls12(SSL_CTX *context) {
    SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION);
    SSL_CTX_set_max_proto_version(context, DTLS1_2_VERSION);
}

static inline long nagare_SSL_CTX_set_groups(SSL_CTX *context, const char *names) {
    return SSL_CTX_set1_groups_list(context, names);
}

static inline void nagare_SSL_CTX_disable_sessions(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

static inline void nagare_SSL_CTX_set_options(SSL_CTX *context) {
    SSL_CTX_set_options(
        context, SSL_OP_NO_QUERY_MTU | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION
                     | SSL_OP_CIPHER_SERVER_PREFERENCE);
}

/// For TLS on a byte stream. Without tickets and renegotiation a connection has no state beyond its own, and a record buffer is
/// freed while it is empty.
static inline void nagare_SSL_CTX_set_stream_options(SSL_CTX *context) {
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(
        context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE
                     | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

/// Permits TLS 1.0 to 1.`minor` only.
static inline void nagare_SSL_CTX_limit_tls(SSL_CTX *context, int minor) {
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context, TLS1_VERSION + minor);
}

static inline long nagare_SSL_CTX_add_chain(SSL_CTX *context, X509 *certificate) {
    return SSL_CTX_add1_chain_cert(context, certificate);
}

static inline long nagare_SSL_set_name(SSL *ssl, const char *name) { return SSL_set_tlsext_host_name(ssl, name); }

static inline void nagare_SSL_CTX_set_max_cert_list(SSL_CTX *context, long bytes) {
    SSL_CTX_set_max_cert_list(context, bytes);
}

/// Runs on both sides when the extensions of the peer's hello are read.
static inline void nagare_SSL_CTX_set_hello_cb(SSL_CTX *context, int (*callback)(SSL *, int *, void *)) {
    SSL_CTX_set_tlsext_servername_callback(context, callback);
}

/// The longest fragment that is sent, 512 to 16384 bytes.
static inline long nagare_SSL_set_max_fragment(SSL *ssl, long bytes) { return SSL_set_max_send_fragment(ssl, bytes); }

static inline long nagare_SSL_set_mtu(SSL *ssl, long bytes) { return SSL_set_mtu(ssl, bytes); }

static inline int nagare_DTLS_timer_is_running(SSL *ssl) {
    struct timeval left;
    return DTLSv1_get_timeout(ssl, &left) == 1;
}

static inline long nagare_DTLS_handle_timeout(SSL *ssl) { return DTLSv1_handle_timeout(ssl); }

/// Whether BIO_CTRL_DGRAM_SET_NEXT_TIMEOUT hands out the address of the connection's own deadline. OpenSSL 3.0 and
/// 3.1 do; later versions hand out the address of a copy on the stack.
static inline int nagare_DTLS_deadline_is_shared(void) {
    return OpenSSL_version_num() >= 0x30000000UL && OpenSSL_version_num() < 0x30200000UL;
}

/// Moves a running timer's deadline into the past; a stopped one (all zero) stays stopped.
static inline void nagare_DTLS_expire(void *deadline) {
    struct timeval *time = (struct timeval *)deadline;
    if (time->tv_sec != 0 || time->tv_usec != 0) {
        time->tv_sec = 1;
        time->tv_usec = 0;
    }
}

static inline void nagare_BIO_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
static inline void nagare_BIO_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }

static inline EVP_PKEY *nagare_EVP_generate_EC(const char *curve) { return EVP_EC_gen(curve); }

// HMAC-SHA1 from kept states: the EVP interface allocates for each copy of a started digest. The functions are
// deprecated for applications in general, not removed; a system header's use of them does not warn.

/// SHA-1 having taken in the key, padded, of the inner and of the outer hash (RFC 2104 §4).
typedef struct {
    SHA_CTX inner;
    SHA_CTX outer;
} nagare_HMAC_SHA1_key;

/// A key of at most 64 bytes.
static inline int nagare_HMAC_SHA1_prepare(nagare_HMAC_SHA1_key *key, const unsigned char *bytes, size_t count) {
    unsigned char block[64];
    if (count > sizeof block) { return 0; }
    for (size_t i = 0; i < sizeof block; i++) { block[i] = (unsigned char)((i < count ? bytes[i] : 0) ^ 0x36); }
    int isReady = SHA1_Init(&key->inner) == 1 && SHA1_Update(&key->inner, block, sizeof block) == 1;
    for (size_t i = 0; i < sizeof block; i++) { block[i] ^= 0x36 ^ 0x5c; }
    isReady = isReady && SHA1_Init(&key->outer) == 1 && SHA1_Update(&key->outer, block, sizeof block) == 1;
    OPENSSL_cleanse(block, sizeof block);
    return isReady;
}

/// Writes the 20-byte digest.
static inline void nagare_HMAC_SHA1(const nagare_HMAC_SHA1_key *key, const void *bytes, size_t count,
                                    unsigned char *digest) {
    SHA_CTX state = key->inner;
    SHA1_Update(&state, bytes, count);
    SHA1_Final(digest, &state);
    state = key->outer;
    SHA1_Update(&state, digest, SHA_DIGEST_LENGTH);
    SHA1_Final(digest, &state);
}

// AES-GCM and AES-CTR with a context that keeps its key: each packet sets nothing but the initialization vector.

/// Encrypts `count` bytes and writes the 16-byte tag. Returns whether it succeeded.
static inline int nagare_GCM_seal(EVP_CIPHER_CTX *context, const unsigned char *nonce, const void *associated,
                                  int associatedCount, const void *plain, void *cipher, int count, void *tag) {
    int done = 0;
    return EVP_EncryptInit_ex(context, NULL, NULL, NULL, nonce) == 1
        && EVP_EncryptUpdate(context, NULL, &done, (const unsigned char *)associated, associatedCount) == 1
        && (count == 0
            || EVP_EncryptUpdate(context, (unsigned char *)cipher, &done, (const unsigned char *)plain, count) == 1)
        && EVP_EncryptFinal_ex(context, (unsigned char *)cipher + count, &done) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1;
}

/// Decrypts `count` bytes. Returns whether the 16-byte tag fits.
static inline int nagare_GCM_open(EVP_CIPHER_CTX *context, const unsigned char *nonce, const void *associated,
                                  int associatedCount, const void *cipher, void *plain, int count, const void *tag) {
    int done = 0;
    return EVP_DecryptInit_ex(context, NULL, NULL, NULL, nonce) == 1
        && EVP_DecryptUpdate(context, NULL, &done, (const unsigned char *)associated, associatedCount) == 1
        && (count == 0
            || EVP_DecryptUpdate(context, (unsigned char *)plain, &done, (const unsigned char *)cipher, count) == 1)
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, (void *)tag) == 1
        && EVP_DecryptFinal_ex(context, (unsigned char *)plain + count, &done) == 1;
}

/// Counter mode from a 16-byte counter block, either way. Returns whether it succeeded.
static inline int nagare_CTR_crypt(EVP_CIPHER_CTX *context, const unsigned char *counter, const void *input,
                                   void *output, int count) {
    int done = 0;
    return EVP_EncryptInit_ex(context, NULL, NULL, NULL, counter) == 1
        && (count == 0
            || EVP_EncryptUpdate(context, (unsigned char *)output, &done, (const unsigned char *)input, count) == 1);
}
