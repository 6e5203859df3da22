#include "ipsecmb.h"

#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<intel-ipsec-mb.h>)
#define NAGARE_HAS_IMB 1
#endif
#endif

#ifdef NAGARE_HAS_IMB

#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GCM_TAG_BYTES 16
#define SHA1_TAG_BYTES 10
/* The shortest HMAC-SHA1 that the library writes. */
#define SHA1_OUTPUT_BYTES 12

struct nagare_imb {
    IMB_MGR *manager;
    size_t lanes;
    struct gcm_context_data gcm;
    /* Jobs with everything set that is the same for every packet. */
    IMB_JOB cipher;
    IMB_JOB hashes[NAGARE_IMB_BATCH_MAX];
    uint8_t digests[NAGARE_IMB_BATCH_MAX][16];
};

struct nagare_imb_key {
    /* GCM's key schedule and powers of the hash key, or counter mode's key schedule. */
    union {
        struct gcm_key_data gcm;
        DECLARE_ALIGNED(uint8_t schedule[16 * 11], 16);
    };
    aes_gcm_enc_dec_t seal;
    aes_gcm_enc_dec_t open;
};

static struct {
    IMB_MGR *(*alloc)(uint64_t flags);
    void (*free)(IMB_MGR *manager);
    void (*init)(IMB_MGR *manager, IMB_ARCH *arch);
    bool is_available;
} library;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static IMB_MGR *make_manager(void) {
    IMB_MGR *manager = library.alloc(0);
    if (manager == NULL) { return NULL; }
    IMB_ARCH arch = IMB_ARCH_NONE;
    library.init(manager, &arch);
    const uint64_t needed = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ | IMB_FEATURE_SELF_TEST_PASS;
    if (arch >= IMB_ARCH_SSE && (manager->features & needed) == needed) { return manager; }
    library.free(manager);
    return NULL;
}

static void load(void) {
    /* Kept open for the life of the process. */
    void *handle = dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) { return; }
    unsigned (*version)(void);
    *(void **)&version = dlsym(handle, "imb_get_version");
    *(void **)&library.alloc = dlsym(handle, "alloc_mb_mgr");
    *(void **)&library.free = dlsym(handle, "free_mb_mgr");
    *(void **)&library.init = dlsym(handle, "init_mb_mgr_auto");
    /* The manager is a structure of the header, and grows from version to version. */
    if (version == NULL || version() != IMB_VERSION_NUM) { return; }
    if (library.alloc == NULL || library.free == NULL || library.init == NULL) { return; }
    IMB_MGR *manager = make_manager();
    if (manager == NULL) { return; }
    library.free(manager);
    library.is_available = true;
}

bool nagare_imb_is_available(void) {
    pthread_once(&library_once, load);
    return library.is_available;
}

struct nagare_imb *nagare_imb_create(void) {
    if (!nagare_imb_is_available()) { return NULL; }
    struct nagare_imb *created = aligned_alloc(64, (sizeof *created + 63) / 64 * 64);
    if (created == NULL) { return NULL; }
    memset(created, 0, sizeof *created);
    created->manager = make_manager();
    if (created->manager == NULL) {
        free(created);
        return NULL;
    }
    created->lanes = created->manager->used_arch == IMB_ARCH_AVX512 ? 16
                   : created->manager->used_arch == IMB_ARCH_AVX2   ? 8
                                                                    : 4;
    created->cipher.key_len_in_bytes = 16;
    created->cipher.iv_len_in_bytes = 16;
    created->cipher.cipher_mode = IMB_CIPHER_CNTR;
    created->cipher.cipher_direction = IMB_DIR_ENCRYPT;
    created->cipher.hash_alg = IMB_AUTH_NULL;
    created->cipher.chain_order = IMB_ORDER_CIPHER_HASH;
    for (size_t i = 0; i < NAGARE_IMB_BATCH_MAX; i++) {
        IMB_JOB *job = &created->hashes[i];
        job->cipher_mode = IMB_CIPHER_NULL;
        job->hash_alg = IMB_AUTH_HMAC_SHA_1;
        job->chain_order = IMB_ORDER_HASH_CIPHER;
        job->auth_tag_output = created->digests[i];
        job->auth_tag_output_len_in_bytes = SHA1_OUTPUT_BYTES;
    }
    return created;
}

void nagare_imb_destroy(struct nagare_imb *manager) {
    library.free(manager->manager);
    free(manager);
}

size_t nagare_imb_lanes(const struct nagare_imb *manager) { return manager->lanes; }

static struct nagare_imb_key *make_key(void) {
    struct nagare_imb_key *key = aligned_alloc(64, (sizeof *key + 63) / 64 * 64);
    if (key != NULL) { memset(key, 0, sizeof *key); }
    return key;
}

struct nagare_imb_key *nagare_imb_create_gcm_key(struct nagare_imb *manager, const uint8_t *bytes, size_t count) {
    if (count != 16 && count != 32) { return NULL; }
    struct nagare_imb_key *key = make_key();
    if (key == NULL) { return NULL; }
    IMB_MGR *imb = manager->manager;
    if (count == 16) {
        IMB_AES128_GCM_PRE(imb, bytes, &key->gcm);
        key->seal = imb->gcm128_enc;
        key->open = imb->gcm128_dec;
    } else {
        IMB_AES256_GCM_PRE(imb, bytes, &key->gcm);
        key->seal = imb->gcm256_enc;
        key->open = imb->gcm256_dec;
    }
    return key;
}

struct nagare_imb_key *nagare_imb_create_ctr_key(struct nagare_imb *manager, const uint8_t *bytes, size_t count) {
    if (count != 16) { return NULL; }
    struct nagare_imb_key *key = make_key();
    if (key == NULL) { return NULL; }
    DECLARE_ALIGNED(uint8_t unused[16 * 11], 16);
    IMB_AES_KEYEXP_128(manager->manager, bytes, key->schedule, unused);
    explicit_bzero(unused, sizeof unused);
    return key;
}

void nagare_imb_destroy_key(struct nagare_imb_key *key) {
    explicit_bzero(key, sizeof *key);
    free(key);
}

void nagare_imb_gcm_seal(struct nagare_imb *manager, const struct nagare_imb_key *key, const void *nonce,
                         const void *associated, size_t associated_count, const void *plain, void *cipher,
                         size_t count, void *tag) {
    key->seal(&key->gcm, &manager->gcm, cipher, plain, count, nonce, associated, associated_count, tag, GCM_TAG_BYTES);
}

bool nagare_imb_gcm_open(struct nagare_imb *manager, const struct nagare_imb_key *key, const void *nonce,
                         const void *associated, size_t associated_count, const void *cipher, void *plain,
                         size_t count, const void *tag) {
    uint64_t computed[2];
    uint64_t received[2];
    memcpy(received, tag, sizeof received);
    key->open(&key->gcm, &manager->gcm, plain, cipher, count, nonce, associated, associated_count,
              (uint8_t *)computed, GCM_TAG_BYTES);
    return ((computed[0] ^ received[0]) | (computed[1] ^ received[1])) == 0;
}

void nagare_imb_ctr(struct nagare_imb *manager, const struct nagare_imb_key *key, const void *counter,
                    const void *input, void *output, size_t count) {
    if (count == 0) { return; }
    IMB_JOB *job = &manager->cipher;
    job->enc_keys = key->schedule;
    job->dec_keys = key->schedule;
    job->src = input;
    job->dst = output;
    job->msg_len_to_cipher_in_bytes = count;
    job->iv = counter;
    IMB_SUBMIT_CIPHER_BURST_NOCHECK(manager->manager, job, 1, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT, IMB_KEY_128_BYTES);
}

bool nagare_imb_hmac_sha1_80(struct nagare_imb *manager, const struct nagare_imb_message *messages, size_t count) {
    if (count == 0) { return true; }
    if (count > NAGARE_IMB_BATCH_MAX) { return false; }
    for (size_t i = 0; i < count; i++) {
        IMB_JOB *job = &manager->hashes[i];
        job->src = messages[i].bytes;
        job->msg_len_to_hash_in_bytes = messages[i].count;
        job->u.HMAC._hashed_auth_key_xor_ipad = messages[i].inner;
        job->u.HMAC._hashed_auth_key_xor_opad = messages[i].outer;
    }
    if (IMB_SUBMIT_HASH_BURST_NOCHECK(manager->manager, manager->hashes, (uint32_t)count, IMB_AUTH_HMAC_SHA_1) != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) { memcpy(messages[i].tag, manager->digests[i], SHA1_TAG_BYTES); }
    return true;
}

#else

bool nagare_imb_is_available(void) { return false; }
struct nagare_imb *nagare_imb_create(void) { return NULL; }
void nagare_imb_destroy(struct nagare_imb *manager) { (void)manager; }
size_t nagare_imb_lanes(const struct nagare_imb *manager) {
    (void)manager;
    return 1;
}

struct nagare_imb_key *nagare_imb_create_gcm_key(struct nagare_imb *manager, const uint8_t *bytes, size_t count) {
    (void)manager, (void)bytes, (void)count;
    return NULL;
}
struct nagare_imb_key *nagare_imb_create_ctr_key(struct nagare_imb *manager, const uint8_t *bytes, size_t count) {
    (void)manager, (void)bytes, (void)count;
    return NULL;
}
void nagare_imb_destroy_key(struct nagare_imb_key *key) { (void)key; }

void nagare_imb_gcm_seal(struct nagare_imb *manager, const struct nagare_imb_key *key, const void *nonce,
                         const void *associated, size_t associated_count, const void *plain, void *cipher,
                         size_t count, void *tag) {
    (void)manager, (void)key, (void)nonce, (void)associated, (void)associated_count;
    (void)plain, (void)cipher, (void)count, (void)tag;
}
bool nagare_imb_gcm_open(struct nagare_imb *manager, const struct nagare_imb_key *key, const void *nonce,
                         const void *associated, size_t associated_count, const void *cipher, void *plain,
                         size_t count, const void *tag) {
    (void)manager, (void)key, (void)nonce, (void)associated, (void)associated_count;
    (void)cipher, (void)plain, (void)count, (void)tag;
    return false;
}
void nagare_imb_ctr(struct nagare_imb *manager, const struct nagare_imb_key *key, const void *counter,
                    const void *input, void *output, size_t count) {
    (void)manager, (void)key, (void)counter, (void)input, (void)output, (void)count;
}
bool nagare_imb_hmac_sha1_80(struct nagare_imb *manager, const struct nagare_imb_message *messages, size_t count) {
    (void)manager, (void)messages, (void)count;
    return false;
}

#endif
