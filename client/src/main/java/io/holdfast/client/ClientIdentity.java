package io.holdfast.client;

/**
 * Who a client is, as far as claims on volumes go: the name in its certificate or of its token;
 * without one, its source address and the node it uses. Two connections with the same identity
 * share a claim.
 *
 * @param name at most 512 bytes of UTF-8, for instance {@code 192.0.2.7@node1}
 */
public record ClientIdentity(String name) {
    @Override
    public String toString() {
        return name;
    }
}
