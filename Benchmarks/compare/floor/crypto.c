/* SRTP with fixed keys (RFC 3711, RFC 7714): AEAD_AES_128_GCM and AES128_CM_HMAC_SHA1_80, by OpenSSL or intel-ipsec-mb.
 * The rollover counter is always 0, because a run is short. */
#include "floor.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif

enum { GCM_TAG_BYTES = 16, CM_TAG_BYTES = 10, SHA1_BYTES = 20, SHA1_BLOCK_BYTES = 64, ROC_BYTES = 4 };

struct key {
    enum profile profile;
    enum crypto crypto;
    uint8_t salt[14];
    EVP_CIPHER_CTX *encrypt, *decrypt, *peek;
    EVP_MAC_CTX *mac;
#ifdef WITH_IPSEC_MB
    _Alignas(64) struct gcm_key_data gcm;
    struct gcm_context_data gcm_context;
    DECLARE_ALIGNED(uint32_t enc_keys[4 * 11], 16);
    DECLARE_ALIGNED(uint32_t dec_keys[4 * 11], 16);
    uint8_t ipad[SHA1_BYTES], opad[SHA1_BYTES];
#endif
};

int tag_bytes(enum profile profile) { return profile == PROFILE_GCM ? GCM_TAG_BYTES : CM_TAG_BYTES; }

static void check(int ok, const char *what) {
    if (!ok) die(what);
}

/* RFC 7714 §8.1: the salt, xored with 00 00 ‖ SSRC ‖ ROC ‖ SEQ. */
static void gcm_iv(const struct key *key, const uint8_t *packet, uint8_t iv[12]) {
    memcpy(iv, key->salt, 12);
    for (int i = 0; i < 4; i++) iv[2 + i] ^= packet[8 + i];
    iv[10] ^= packet[2];
    iv[11] ^= packet[3];
}

/* RFC 3711 §4.1.1: the salt, xored with the SSRC and the index, above a 16-bit block counter. */
static void cm_iv(const struct key *key, const uint8_t *packet, uint8_t iv[16]) {
    memcpy(iv, key->salt, 14);
    iv[14] = iv[15] = 0;
    for (int i = 0; i < 4; i++) iv[4 + i] ^= packet[8 + i];
    iv[12] ^= packet[2];
    iv[13] ^= packet[3];
}

#ifdef WITH_IPSEC_MB
static IMB_MGR *manager;
/* Submitted jobs: the destination of each tag, and the 20 bytes that the library writes. */
enum { JOBS_MAX = 1024 };
static struct job {
    uint8_t *packet_tag;
    uint8_t tag[SHA1_BYTES];
    uint8_t iv[16];
} jobs[JOBS_MAX];
static int job_count;

static void job_done(const IMB_JOB *job) {
    if (job == NULL) return;
    check(job->status == IMB_STATUS_COMPLETED, "an encryption job failed");
    const struct job *own = job->user_data;
    memcpy(own->packet_tag, own->tag, CM_TAG_BYTES);
}

void crypto_flush(void) {
    if (job_count == 0) return;
    IMB_JOB *job;
    while ((job = IMB_FLUSH_JOB(manager)) != NULL) job_done(job);
    job_count = 0;
}

static void prepare_ipsec(struct key *key, const uint8_t master[16], const uint8_t auth[SHA1_BYTES]) {
    if (manager == NULL) {
        manager = alloc_mb_mgr(0);
        check(manager != NULL, "alloc_mb_mgr");
        init_mb_mgr_auto(manager, NULL);
    }
    IMB_AES128_GCM_PRE(manager, master, &key->gcm);
    IMB_AES_KEYEXP_128(manager, master, key->enc_keys, key->dec_keys);
    uint8_t block[SHA1_BLOCK_BYTES];
    memset(block, 0x36, sizeof block);
    for (int i = 0; i < SHA1_BYTES; i++) block[i] ^= auth[i];
    IMB_SHA1_ONE_BLOCK(manager, block, key->ipad);
    memset(block, 0x5C, sizeof block);
    for (int i = 0; i < SHA1_BYTES; i++) block[i] ^= auth[i];
    IMB_SHA1_ONE_BLOCK(manager, block, key->opad);
}

static int protect_ipsec(struct key *key, uint8_t *packet, const uint8_t *payload, int bytes) {
    if (key->profile == PROFILE_GCM) {
        uint8_t iv[12];
        gcm_iv(key, packet, iv);
        IMB_AES128_GCM_ENC(manager, &key->gcm, &key->gcm_context, packet + HEADER_BYTES, payload, (uint64_t)bytes, iv, packet,
            HEADER_BYTES, packet + HEADER_BYTES + bytes, GCM_TAG_BYTES);
        return HEADER_BYTES + bytes + GCM_TAG_BYTES;
    }
    if (job_count == JOBS_MAX) crypto_flush();
    struct job *own = &jobs[job_count++];
    /* The library hashes its source, so it must encrypt in place. The hash also covers the rollover counter, which is
     * written to the place of the tag. */
    memcpy(packet + HEADER_BYTES, payload, (size_t)bytes);
    own->packet_tag = packet + HEADER_BYTES + bytes;
    memset(own->packet_tag, 0, ROC_BYTES);
    cm_iv(key, packet, own->iv);
    IMB_JOB *job = IMB_GET_NEXT_JOB(manager);
    job->cipher_mode = IMB_CIPHER_CNTR;
    job->cipher_direction = IMB_DIR_ENCRYPT;
    job->chain_order = IMB_ORDER_CIPHER_HASH;
    job->enc_keys = job->dec_keys = key->enc_keys;
    job->key_len_in_bytes = 16;
    job->src = packet;
    job->dst = packet + HEADER_BYTES;
    job->cipher_start_src_offset_in_bytes = HEADER_BYTES;
    job->msg_len_to_cipher_in_bytes = (uint64_t)bytes;
    job->iv = own->iv;
    job->iv_len_in_bytes = 16;
    job->hash_alg = IMB_AUTH_HMAC_SHA_1;
    job->hash_start_src_offset_in_bytes = 0;
    job->msg_len_to_hash_in_bytes = (uint64_t)(HEADER_BYTES + bytes + ROC_BYTES);
    job->auth_tag_output = own->tag;
    job->auth_tag_output_len_in_bytes = SHA1_BYTES;
    job->u.HMAC._hashed_auth_key_xor_ipad = key->ipad;
    job->u.HMAC._hashed_auth_key_xor_opad = key->opad;
    job->user_data = own;
    job_done(IMB_SUBMIT_JOB(manager));
    return HEADER_BYTES + bytes + CM_TAG_BYTES;
}
#else
void crypto_flush(void) {}
#endif

static EVP_CIPHER_CTX *cipher(const EVP_CIPHER *type, const uint8_t master[16], int encrypts) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    check(context && EVP_CipherInit_ex(context, type, NULL, master, NULL, encrypts) == 1, "EVP_CipherInit_ex");
    return context;
}

struct key *key_create(const struct options *options, uint32_t number) {
    struct key *key = aligned_alloc(64, (sizeof *key + 63) & ~(size_t)63);
    check(key != NULL, "memory");
    memset(key, 0, sizeof *key);
    key->profile = options->profile;
    key->crypto = options->crypto;
    uint8_t master[16], auth[SHA1_BYTES];
    for (size_t i = 0; i < sizeof master; i++) master[i] = (uint8_t)(number * 31 + i * 7 + 1);
    for (size_t i = 0; i < sizeof auth; i++) auth[i] = (uint8_t)(number * 17 + i * 5 + 2);
    for (size_t i = 0; i < sizeof key->salt; i++) key->salt[i] = (uint8_t)(number * 13 + i * 3 + 3);
    const EVP_CIPHER *type = key->profile == PROFILE_GCM ? EVP_aes_128_gcm() : EVP_aes_128_ctr();
    key->encrypt = cipher(type, master, 1);
    key->decrypt = cipher(type, master, 0);
    key->peek = cipher(EVP_aes_128_ctr(), master, 0);
    if (key->profile == PROFILE_CM) {
        EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
        key->mac = EVP_MAC_CTX_new(mac);
        OSSL_PARAM parameters[] = {
            OSSL_PARAM_construct_utf8_string("digest", (char[]){"SHA1"}, 0), OSSL_PARAM_construct_end()};
        check(key->mac && EVP_MAC_init(key->mac, auth, sizeof auth, parameters) == 1, "EVP_MAC_init");
        EVP_MAC_free(mac);
    }
#ifdef WITH_IPSEC_MB
    if (key->crypto == CRYPTO_IPSEC_MB) prepare_ipsec(key, master, auth);
#else
    check(key->crypto == CRYPTO_OPENSSL, "built without intel-ipsec-mb");
#endif
    return key;
}

static void authenticate(struct key *key, const uint8_t *packet, int bytes, uint8_t tag[SHA1_BYTES]) {
    static const uint8_t roc[ROC_BYTES];
    size_t length = 0;
    check(EVP_MAC_init(key->mac, NULL, 0, NULL) == 1 && EVP_MAC_update(key->mac, packet, (size_t)bytes) == 1 &&
              EVP_MAC_update(key->mac, roc, sizeof roc) == 1 && EVP_MAC_final(key->mac, tag, &length, SHA1_BYTES) == 1,
        "HMAC");
}

int key_protect(struct key *key, uint8_t *packet, const uint8_t *payload, int bytes) {
#ifdef WITH_IPSEC_MB
    if (key->crypto == CRYPTO_IPSEC_MB) return protect_ipsec(key, packet, payload, bytes);
#endif
    uint8_t iv[16], tag[SHA1_BYTES];
    int length;
    uint8_t *end = packet + HEADER_BYTES + bytes;
    if (key->profile == PROFILE_GCM) {
        gcm_iv(key, packet, iv);
        check(EVP_EncryptInit_ex(key->encrypt, NULL, NULL, NULL, iv) == 1 &&
                  EVP_EncryptUpdate(key->encrypt, NULL, &length, packet, HEADER_BYTES) == 1 &&
                  EVP_EncryptUpdate(key->encrypt, packet + HEADER_BYTES, &length, payload, bytes) == 1 &&
                  EVP_EncryptFinal_ex(key->encrypt, end, &length) == 1 &&
                  EVP_CIPHER_CTX_ctrl(key->encrypt, EVP_CTRL_AEAD_GET_TAG, GCM_TAG_BYTES, end) == 1,
            "AES-GCM");
        return HEADER_BYTES + bytes + GCM_TAG_BYTES;
    }
    cm_iv(key, packet, iv);
    check(EVP_EncryptInit_ex(key->encrypt, NULL, NULL, NULL, iv) == 1 &&
              EVP_EncryptUpdate(key->encrypt, packet + HEADER_BYTES, &length, payload, bytes) == 1,
        "AES-CM");
    authenticate(key, packet, HEADER_BYTES + bytes, tag);
    memcpy(end, tag, CM_TAG_BYTES);
    return HEADER_BYTES + bytes + CM_TAG_BYTES;
}

int key_unprotect(struct key *key, uint8_t *packet, int bytes) {
    uint8_t iv[16], tag[SHA1_BYTES];
    int length, payload = bytes - HEADER_BYTES - tag_bytes(key->profile);
    if (payload < 0) return -1;
    uint8_t *body = packet + HEADER_BYTES, *end = body + payload;
#ifdef WITH_IPSEC_MB
    if (key->crypto == CRYPTO_IPSEC_MB && key->profile == PROFILE_GCM) {
        gcm_iv(key, packet, iv);
        IMB_AES128_GCM_DEC(manager, &key->gcm, &key->gcm_context, body, body, (uint64_t)payload, iv, packet, HEADER_BYTES, tag,
            GCM_TAG_BYTES);
        return memcmp(tag, end, GCM_TAG_BYTES) == 0 ? payload : -1;
    }
#endif
    if (key->profile == PROFILE_GCM) {
        gcm_iv(key, packet, iv);
        int ok = EVP_DecryptInit_ex(key->decrypt, NULL, NULL, NULL, iv) == 1 &&
                 EVP_DecryptUpdate(key->decrypt, NULL, &length, packet, HEADER_BYTES) == 1 &&
                 EVP_DecryptUpdate(key->decrypt, body, &length, body, payload) == 1 &&
                 EVP_CIPHER_CTX_ctrl(key->decrypt, EVP_CTRL_AEAD_SET_TAG, GCM_TAG_BYTES, end) == 1 &&
                 EVP_DecryptFinal_ex(key->decrypt, end, &length) == 1;
        return ok ? payload : -1;
    }
    authenticate(key, packet, HEADER_BYTES + payload, tag);
    if (memcmp(tag, end, CM_TAG_BYTES) != 0) return -1;
    cm_iv(key, packet, iv);
    return EVP_DecryptInit_ex(key->decrypt, NULL, NULL, NULL, iv) == 1 &&
                   EVP_DecryptUpdate(key->decrypt, body, &length, body, payload) == 1
               ? payload
               : -1;
}

void key_peek(struct key *key, const uint8_t *packet, uint8_t *out, int count) {
    uint8_t iv[16] = {0};
    int length;
    if (key->profile == PROFILE_GCM) {
        /* GCM encrypts in counter mode too, from block 2 on. */
        gcm_iv(key, packet, iv);
        iv[15] = 2;
    } else {
        cm_iv(key, packet, iv);
    }
    check(EVP_DecryptInit_ex(key->peek, NULL, NULL, NULL, iv) == 1 &&
              EVP_DecryptUpdate(key->peek, out, &length, packet + HEADER_BYTES, count) == 1,
        "AES-CTR");
}
