/*
 * fake_cuda.h - what tests tell the fake CUDA driver, and ask it.
 *
 * Owner    the fake's library, loaded once a process: by linking to it or by
 *          the path FAKE_CUDA_LIBRARY, both are the same one.
 * Thread   any.
 * Units    bytes, calls.
 * Errors   uses that the driver would forbid are counted by fake_cuda_wrong.
 * Route    unit tests only
 *
 * Device memory is address space that nobody may touch (PROT_NONE); its bytes
 * lie elsewhere.  Copies on a stream are done when the stream is waited for,
 * not before, and so are kernels (fake_kernels.h).  Two GPUs: 0 has compute
 * capability 8.0, 1 has 5.2, further ones 9.0.
 */

#ifndef INF_T_FAKE_CUDA_H
#define INF_T_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_CUDA_MEMORY  (UINT64_C(1) << 30)   /* of each GPU               */
#define FAKE_CUDA_GRANULE 65536u                /* of memory that is mapped  */
#define FAKE_CUDA_DEVICES_MAX 8

typedef enum {
    FAKE_CUDA_TO_DEVICE,
    FAKE_CUDA_TO_HOST,
    FAKE_CUDA_ON_DEVICE,
    FAKE_CUDA_TO_PEER,
    FAKE_CUDA_MOVED_KINDS
} fake_cuda_moved_e;

/* Back to the beginning: devices, counters, orders to fail.  Allocations
   stay. */
void fake_cuda_reset(void);

/* How many GPUs there are; 0: the driver says that there is no device. */
void fake_cuda_set_devices(int count);

/* The n-th call from now on fails with rc (n = 1: the next); 0: none does.
   Calls that give something back do so, and then fail. */
void fake_cuda_fail_nth(uint64_t n, int rc);

/* Every call of that function fails with rc; NULL: none does. */
void fake_cuda_fail(const char *function, int rc);

/* As FAKE_CUDA_FAIL in the environment: "FUNCTION:CODE:N[:DEVICE],...", each
   once, when its n-th call comes.  A code that poisons a context does. */
void fake_cuda_fail_rules(const char *rules);

/* Every call of the device's context answers rc from now on; 0: mended. */
void fake_cuda_break(int device, int rc);

/* Kernels of that name never end, or touch an address that is not there when
   they run; NULL: none does, and those that hang go on. */
void fake_cuda_hang(const char *kernel);
void fake_cuda_fault_in(const char *kernel);

/* Calls of one function, runs of one kernel, bytes that copies of one kind
   have moved, copies of pageable memory, since the reset. */
uint64_t fake_cuda_count(const char *function);
uint64_t fake_cuda_ran(const char *kernel);
uint64_t fake_cuda_moved(fake_cuda_moved_e kind);
uint64_t fake_cuda_pageable(void);

/* Calls since the reset; errors made to happen among them. */
uint64_t fake_cuda_calls(void);
uint64_t fake_cuda_failures(void);

/* Everything not yet given back: memory, streams, events, modules, graphs,
   contexts, mappings. */
size_t fake_cuda_live(void);

/* Uses that the driver would forbid; *what names the last one. */
size_t fake_cuda_wrong(const char **what);

/* Copies, kernels and events that wait in streams, and waits for streams since the reset. */
size_t fake_cuda_queued(void);
size_t fake_cuda_waits(void);

/* Whether GPU device reaches peer's memory by itself. */
bool fake_cuda_reaches(int device, int peer);

/* Allocations by others: bytes of the device that are in use besides. */
void fake_cuda_occupy(int device, uint64_t bytes);

/* The bytes behind an address on a device; NULL: none allocated. */
void *fake_cuda_bytes(const void *address);

/* Host memory that is pinned. */
bool fake_cuda_is_pinned(const void *base);

#endif /* INF_T_FAKE_CUDA_H */
