package io.holdfast.client.admin;

/**
 * {@code GET /v1/version}.
 *
 * @param version of the program
 * @param node id
 */
public record NodeVersion(String version, String node) {}
