#ifndef NAGARE_IPSECMB_H
#define NAGARE_IPSECMB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* AES-GCM, AES-CTR and batches of HMAC-SHA1 by intel-ipsec-mb.
 *
 * The library is loaded when it is first asked for, not linked, so that one binary runs on machines with and without it;
 * where its header is missing, and off x86-64, all of this builds and nothing is available. A manager and its keys belong
 * to one thread at a time. Only the two create functions of a manager and of a key allocate. */

struct nagare_imb;
struct nagare_imb_key;

/* Messages of one nagare_imb_hmac_sha1_80 at most. */
#define NAGARE_IMB_BATCH_MAX 64

/* Whether the library is there in the version of the header that this was built with, and the CPU has AES-NI. */
bool nagare_imb_is_available(void);

/* NULL when it is not available or there is no memory. */
struct nagare_imb *nagare_imb_create(void);
void nagare_imb_destroy(struct nagare_imb *manager);

/* Messages that are hashed at the same time. */
size_t nagare_imb_lanes(const struct nagare_imb *manager);

/* An expanded AES key: of 16 or 32 bytes for GCM, of 16 for counter mode. NULL for another length, or without memory. */
struct nagare_imb_key *nagare_imb_create_gcm_key(struct nagare_imb *manager, const uint8_t *bytes, size_t count);
struct nagare_imb_key *nagare_imb_create_ctr_key(struct nagare_imb *manager, const uint8_t *bytes, size_t count);
/* Wipes it, too. */
void nagare_imb_destroy_key(struct nagare_imb_key *key);

/* The nonce has 12 bytes, the tag 16. Input and output are the same place or do not overlap. */
void nagare_imb_gcm_seal(struct nagare_imb *manager, const struct nagare_imb_key *key, const void *nonce,
                         const void *associated, size_t associated_count, const void *plain, void *cipher,
                         size_t count, void *tag);
/* Decrypts, and returns whether the tag fits. */
bool nagare_imb_gcm_open(struct nagare_imb *manager, const struct nagare_imb_key *key, const void *nonce,
                         const void *associated, size_t associated_count, const void *cipher, void *plain,
                         size_t count, const void *tag);

/* Counter mode from a block of 16 bytes, both ways. */
void nagare_imb_ctr(struct nagare_imb *manager, const struct nagare_imb_key *key, const void *counter,
                    const void *input, void *output, size_t count);

/* One message of a batch: where ten bytes of its HMAC-SHA1 go, which may overlap the message. The states are SHA-1's five
 * words, as the host stores them, after the key's block of the inner and of the outer hash (RFC 2104 §4). */
struct nagare_imb_message {
    const void *bytes;
    size_t count;
    const void *inner;
    const void *outer;
    void *tag;
};

/* Hashes up to NAGARE_IMB_BATCH_MAX messages. Either all tags are written, or none and the result is false. */
bool nagare_imb_hmac_sha1_80(struct nagare_imb *manager, const struct nagare_imb_message *messages, size_t count);

#endif
