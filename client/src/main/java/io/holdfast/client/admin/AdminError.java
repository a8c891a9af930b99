package io.holdfast.client.admin;

/**
 * Body of every answer with a 4xx or 5xx status.
 *
 * @param error what is wrong, with the value
 * @param remedy what to do about it; may be empty
 */
public record AdminError(String error, String remedy) {}
