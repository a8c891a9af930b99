/**
 * The store of a node: {@link io.holdfast.node.store.JournalStore} implements {@link
 * io.holdfast.node.port.Store} with one append-only journal for all shards, an extent map whose
 * pages are in memory and written behind into RocksDB, and checkpoints that tie the two together.
 *
 * <p>Depends on {@code node.port}, {@code proto.peer}, the records of {@code node.replica} that the
 * port names, Netty's primitive collections, and RocksDB (in {@code MapDatabase} only). {@code
 * docs/store.md} describes files and formats.
 */
@NullMarked
package io.holdfast.node.store;

import org.jspecify.annotations.NullMarked;
