#pragma once
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
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

static inline void nagare_SSL_CTX_set_max_cert_list(SSL_CTX *context, long bytes) {
    SSL_CTX_set_max_cert_list(context, bytes);
}

/// Runs on both sides when the extensions of the peer's hello are read.
static inline void nagare_SSL_CTX_set_hello_cb(SSL_CTX *context, int (*callback)(SSL *, int *, void *)) {
    SSL_CTX_set_tlsext_servername_callback(context, callback);
}

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

static inline EVP_PKEY *nagare_EVP_generate_P256(void) { return EVP_EC_gen("P-256"); }
