#define OPENSSL_SUPPRESS_DEPRECATED
#include "Crypto.h"

#include <dlfcn.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<intel-ipsec-mb.h>)
#include <intel-ipsec-mb.h>
#define HAS_IPSEC_MB 1
#else
#define HAS_IPSEC_MB 0
#endif

// Submitted jobs that are not completed. Each has a tag that must be copied behind its packet.
#define TAGS_MAX 64

struct engine {
    int profile, kind;
#if HAS_IPSEC_MB
    IMB_MGR *manager;
    struct gcm_context_data gcm;
    struct {
        uint8_t tag[20];
        uint8_t *to;
    } tags[TAGS_MAX];
    unsigned submitted;
#endif
};

struct crypto {
    uint8_t key[32], salt[14], auth_key[20];
    EVP_CIPHER_CTX *cipher, *decipher;
    // HMAC's state after the padded key (RFC 2104), so that it is not computed for every packet.
    SHA_CTX inner, outer;
#if HAS_IPSEC_MB
    struct gcm_key_data *gcm;
    DECLARE_ALIGNED(uint32_t schedule[15 * 4], 16);
    DECLARE_ALIGNED(uint8_t inner_state[64], 16);
    DECLARE_ALIGNED(uint8_t outer_state[64], 16);
#endif
};

#if HAS_IPSEC_MB
static IMB_MGR *make_manager(void) {
    static void *library;
    if (library == NULL) library = dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return NULL;
    IMB_MGR *(*make)(uint64_t) = (IMB_MGR * (*)(uint64_t)) dlsym(library, "alloc_mb_mgr");
    void (*start)(IMB_MGR *, IMB_ARCH *) = (void (*)(IMB_MGR *, IMB_ARCH *))dlsym(library, "init_mb_mgr_auto");
    if (make == NULL || start == NULL) return NULL;
    IMB_MGR *manager = make(0);
    if (manager != NULL) start(manager, NULL);
    return manager;
}
#endif

size_t crypto_tag_bytes(int profile) { return profile == nagare_cm_sha1_80 ? 10 : 16; }

engine *engine_make(int profile, int kind) {
    engine *made = calloc(1, sizeof *made);
    made->profile = profile;
    made->kind = kind;
#if HAS_IPSEC_MB
    if (kind == nagare_ipsec_mb) made->manager = make_manager();
#endif
    return made;
}
// The library's manager is never freed: there are few, one for each measurement.
void engine_free(engine *engine) { free(engine); }

static void make_hmac(crypto *keys) {
    uint8_t block[64];
    for (int outer = 0; outer < 2; outer++) {
        memset(block, outer ? 0x5c : 0x36, sizeof block);
        for (int index = 0; index < 20; index++) block[index] ^= keys->auth_key[index];
        SHA_CTX *state = outer ? &keys->outer : &keys->inner;
        SHA1_Init(state);
        SHA1_Update(state, block, sizeof block);
    }
}

#if HAS_IPSEC_MB
static void make_ipsec_mb(engine *engine, crypto *keys) {
    IMB_MGR *manager = engine->manager;
    if (engine->profile == nagare_cm_sha1_80) {
        DECLARE_ALIGNED(uint32_t unused[15 * 4], 16);
        uint8_t block[64];
        IMB_AES_KEYEXP_128(manager, keys->key, keys->schedule, unused);
        memset(block, 0x36, sizeof block);
        for (int index = 0; index < 20; index++) block[index] ^= keys->auth_key[index];
        IMB_SHA1_ONE_BLOCK(manager, block, keys->inner_state);
        memset(block, 0x5c, sizeof block);
        for (int index = 0; index < 20; index++) block[index] ^= keys->auth_key[index];
        IMB_SHA1_ONE_BLOCK(manager, block, keys->outer_state);
    } else {
        keys->gcm = aligned_alloc(64, (sizeof *keys->gcm + 63) / 64 * 64);
        if (engine->profile == nagare_gcm_128) {
            IMB_AES128_GCM_PRE(manager, keys->key, keys->gcm);
        } else {
            IMB_AES256_GCM_PRE(manager, keys->key, keys->gcm);
        }
    }
}
#endif

crypto *crypto_make(engine *engine, unsigned seed) {
    crypto *keys = aligned_alloc(64, (sizeof *keys + 63) / 64 * 64);
    memset(keys, 0, sizeof *keys);
    for (size_t index = 0; index < sizeof keys->key; index++) keys->key[index] = (uint8_t)(seed * 31 + index * 7);
    for (size_t index = 0; index < sizeof keys->salt; index++) keys->salt[index] = (uint8_t)(seed * 17 + index * 5);
    for (size_t index = 0; index < 20; index++) keys->auth_key[index] = (uint8_t)(seed * 13 + index * 3);
#if HAS_IPSEC_MB
    if (engine->kind == nagare_ipsec_mb) {
        make_ipsec_mb(engine, keys);
        return keys;
    }
#endif
    const EVP_CIPHER *cipher = engine->profile == nagare_cm_sha1_80 ? EVP_aes_128_ctr()
        : engine->profile == nagare_gcm_128                         ? EVP_aes_128_gcm()
                                                                    : EVP_aes_256_gcm();
    keys->cipher = EVP_CIPHER_CTX_new();
    keys->decipher = EVP_CIPHER_CTX_new();
    EVP_EncryptInit_ex(keys->cipher, cipher, NULL, keys->key, NULL);
    EVP_DecryptInit_ex(keys->decipher, cipher, NULL, keys->key, NULL);
    make_hmac(keys);
    return keys;
}

void crypto_free(engine *engine, crypto *keys) {
    (void)engine;
    EVP_CIPHER_CTX_free(keys->cipher);
    EVP_CIPHER_CTX_free(keys->decipher);
#if HAS_IPSEC_MB
    free(keys->gcm);
#endif
    free(keys);
}

// RFC 7714 §8.1, RFC 3711 §4.1.1.
static void make_iv(const engine *engine, const crypto *keys, const uint8_t *ssrc, uint64_t index, uint8_t *iv) {
    uint8_t number[6];
    store32(number, (uint32_t)(index >> 16));
    store16(number + 4, (uint16_t)index);
    int offset = engine->profile == nagare_cm_sha1_80 ? 4 : 2;
    size_t salt = engine->profile == nagare_cm_sha1_80 ? 14 : 12;
    memset(iv, 0, 16);
    memcpy(iv + offset, ssrc, 4);
    memcpy(iv + offset + 4, number, 6);
    for (size_t position = 0; position < salt; position++) iv[position] ^= keys->salt[position];
}

static void hmac(const crypto *keys, const uint8_t *packet, size_t length, uint64_t index, uint8_t *tag) {
    uint8_t digest[20], rollover[4];
    store32(rollover, (uint32_t)(index >> 16));
    SHA_CTX state = keys->inner;
    SHA1_Update(&state, packet, length);
    SHA1_Update(&state, rollover, 4);
    SHA1_Final(digest, &state);
    state = keys->outer;
    SHA1_Update(&state, digest, 20);
    SHA1_Final(digest, &state);
    memcpy(tag, digest, 10);
}

#if HAS_IPSEC_MB
static void copy_tags(engine *engine) {
    for (unsigned place = 0; place < engine->submitted; place++) {
        memcpy(engine->tags[place].to, engine->tags[place].tag, 10);
    }
    engine->submitted = 0;
}

static void submit(
    engine *engine, crypto *keys, uint8_t *packet, size_t header_bytes, size_t payload_bytes, const uint8_t *iv,
    uint64_t index) {
    size_t length = header_bytes + payload_bytes;
    store32(packet + length, (uint32_t)(index >> 16));
    unsigned place = engine->submitted++;
    engine->tags[place].to = packet + length;
    IMB_JOB *job = IMB_GET_NEXT_JOB(engine->manager);
    job->cipher_direction = IMB_DIR_ENCRYPT;
    job->chain_order = IMB_ORDER_CIPHER_HASH;
    job->cipher_mode = IMB_CIPHER_CNTR;
    job->hash_alg = IMB_AUTH_HMAC_SHA_1;
    job->enc_keys = keys->schedule;
    job->dec_keys = keys->schedule;
    job->key_len_in_bytes = 16;
    job->src = packet;
    job->dst = packet + header_bytes;
    job->cipher_start_src_offset_in_bytes = header_bytes;
    job->msg_len_to_cipher_in_bytes = payload_bytes;
    job->hash_start_src_offset_in_bytes = 0;
    job->msg_len_to_hash_in_bytes = length + 4;
    job->iv = iv;
    job->iv_len_in_bytes = 16;
    job->auth_tag_output = engine->tags[place].tag;
    job->auth_tag_output_len_in_bytes = 10;
    job->u.HMAC._hashed_auth_key_xor_ipad = keys->inner_state;
    job->u.HMAC._hashed_auth_key_xor_opad = keys->outer_state;
    // The library encrypts immediately and only the hash completes later, so the IV need not outlive this call.
    IMB_SUBMIT_JOB_NOCHECK(engine->manager);
    while (IMB_GET_COMPLETED_JOB(engine->manager) != NULL) {}
    if (engine->submitted == TAGS_MAX) crypto_flush(engine);
}
#endif

void crypto_flush(engine *engine) {
#if HAS_IPSEC_MB
    if (engine->manager == NULL || engine->profile != nagare_cm_sha1_80) return;
    while (IMB_FLUSH_JOB(engine->manager) != NULL) {}
    copy_tags(engine);
#else
    (void)engine;
#endif
}

size_t crypto_protect(
    engine *engine, crypto *keys, uint8_t *to, size_t header_bytes, const uint8_t *payload, size_t payload_bytes,
    uint64_t index) {
    uint8_t iv[16];
    int length;
    make_iv(engine, keys, to + 8, index, iv);
    uint8_t *body = to + header_bytes;
#if HAS_IPSEC_MB
    if (engine->kind == nagare_ipsec_mb) {
        if (engine->profile == nagare_cm_sha1_80) {
            memcpy(body, payload, payload_bytes);
            submit(engine, keys, to, header_bytes, payload_bytes, iv, index);
            return header_bytes + payload_bytes + 10;
        }
        if (engine->profile == nagare_gcm_128) {
            IMB_AES128_GCM_ENC(engine->manager, keys->gcm, &engine->gcm, body, payload, payload_bytes, iv, to,
                header_bytes, body + payload_bytes, 16);
        } else {
            IMB_AES256_GCM_ENC(engine->manager, keys->gcm, &engine->gcm, body, payload, payload_bytes, iv, to,
                header_bytes, body + payload_bytes, 16);
        }
        return header_bytes + payload_bytes + 16;
    }
#endif
    EVP_EncryptInit_ex(keys->cipher, NULL, NULL, NULL, iv);
    if (engine->profile == nagare_cm_sha1_80) {
        EVP_EncryptUpdate(keys->cipher, body, &length, payload, (int)payload_bytes);
        hmac(keys, to, header_bytes + payload_bytes, index, body + payload_bytes);
        return header_bytes + payload_bytes + 10;
    }
    EVP_EncryptUpdate(keys->cipher, NULL, &length, to, (int)header_bytes);
    EVP_EncryptUpdate(keys->cipher, body, &length, payload, (int)payload_bytes);
    EVP_EncryptFinal_ex(keys->cipher, body + length, &length);
    EVP_CIPHER_CTX_ctrl(keys->cipher, EVP_CTRL_GCM_GET_TAG, 16, body + payload_bytes);
    return header_bytes + payload_bytes + 16;
}

int crypto_unprotect(
    engine *engine, crypto *keys, uint8_t *packet, size_t header_bytes, size_t payload_bytes, uint64_t index) {
    uint8_t iv[16], tag[16];
    int length;
    make_iv(engine, keys, packet + 8, index, iv);
    uint8_t *body = packet + header_bytes;
#if HAS_IPSEC_MB
    if (engine->kind == nagare_ipsec_mb && engine->profile != nagare_cm_sha1_80) {
        if (engine->profile == nagare_gcm_128) {
            IMB_AES128_GCM_DEC(engine->manager, keys->gcm, &engine->gcm, body, body, payload_bytes, iv, packet,
                header_bytes, tag, 16);
        } else {
            IMB_AES256_GCM_DEC(engine->manager, keys->gcm, &engine->gcm, body, body, payload_bytes, iv, packet,
                header_bytes, tag, 16);
        }
        return memcmp(tag, body + payload_bytes, 16) == 0;
    }
#endif
    EVP_DecryptInit_ex(keys->decipher, NULL, NULL, NULL, iv);
    if (engine->profile == nagare_cm_sha1_80) {
        hmac(keys, packet, header_bytes + payload_bytes, index, tag);
        if (memcmp(tag, body + payload_bytes, 10) != 0) return 0;
        EVP_DecryptUpdate(keys->decipher, body, &length, body, (int)payload_bytes);
        return 1;
    }
    EVP_DecryptUpdate(keys->decipher, NULL, &length, packet, (int)header_bytes);
    EVP_DecryptUpdate(keys->decipher, body, &length, body, (int)payload_bytes);
    EVP_CIPHER_CTX_ctrl(keys->decipher, EVP_CTRL_GCM_SET_TAG, 16, body + payload_bytes);
    return EVP_DecryptFinal_ex(keys->decipher, body + length, &length) > 0;
}
